"""The files of the role `site`, made from the model.

`python -m tests.unit.site.role_spec` writes them; a test holds the role to them.
"""

import json
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from hpcsite.paths import content_dir
from hpcsite.site.model import SiteKeys

ROLE = content_dir() / "roles" / "site"
_TYPES = {
    str: "str",
    int: "int",
    float: "float",
    bool: "bool",
    IPv4Address: "str",
    IPv4Network: "str",
}
_HEAD = """\
argument_specs:
  main:
    short_description: The site's own keys, which all roles read
    description: >-
      The same keys, types and defaults as hpcsite/site/model, which says what each means, and from
      which this file is made. This role does nothing else.
    options:
"""


class _Flow(list[Any]):
    """A list that is written on one line."""


class _Dumper(yaml.SafeDumper):
    """Writes short lists on one line, and repeats nothing by reference."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ANN401 - as the base has it
        return True


_Dumper.add_representer(
    _Flow,
    lambda dumper, data: dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=True),
)


def specification() -> str:
    """Text of meta/argument_specs.yml."""
    options = {f"site_{name}": _option(f) for name, f in SiteKeys.model_fields.items()}
    text = yaml.dump(options, Dumper=_Dumper, sort_keys=False, width=88, allow_unicode=True)
    return _HEAD + "".join(f"      {line}\n" for line in text.splitlines())


def defaults() -> str:
    """Text of defaults/main.yml."""
    return "".join(_defaults())


def default_of(field: FieldInfo) -> object:
    """Default of a field as YAML writes it; what a model has set by itself need not be said."""
    if isinstance(field.default, BaseModel):
        return field.default.model_dump(mode="json", exclude_defaults=True)
    return json.loads(json.dumps(field.default, default=list))


def fields_of(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Fields of a model, its own before those that it inherits: a name comes first."""
    own = model.__annotations__
    return dict(sorted(model.model_fields.items(), key=lambda item: item[0] not in own))


def plain(annotation: Any) -> Any:  # noqa: ANN401 - annotations have no type of their own
    """Take `Annotated` and `| None` off an annotation."""
    if get_origin(annotation) is Annotated:
        return plain(get_args(annotation)[0])
    members = [member for member in get_args(annotation) if member is not NoneType]
    if NoneType in get_args(annotation) and len(members) == 1:
        return plain(members[0])
    return annotation


def _defaults() -> Iterator[str]:
    for name, field in SiteKeys.model_fields.items():
        if not field.is_required():
            value = default_of(field)
            shown = "" if value is None else f" {value}"
            yield f"site_{name}:{shown}\n"


def _option(field: FieldInfo) -> dict[str, Any]:
    assert field.description
    text = field.description[0].upper() + field.description[1:]
    option: dict[str, Any] = {"description": f"{text}.", **_kind(field.annotation)}
    if field.is_required():
        option["required"] = True
    elif field.default is not None:
        value = default_of(field)
        option["default"] = _Flow(value) if isinstance(value, list) else value
    return option


def _kind(annotation: Any) -> dict[str, Any]:  # noqa: ANN401 - annotations have no type of their own
    kind = plain(annotation)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple:
        element = _kind(arguments[0])
        below = {"options": element["options"]} if "options" in element else {}
        return {"type": "list", "elements": element["type"], **below}
    if origin is dict:
        return {"type": "dict"}
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        options = {name: _option(field) for name, field in fields_of(kind).items()}
        return {"type": "dict", "options": options}
    if origin is Literal:
        # To Ansible, null is none of the choices, though the key may be left empty.
        choices = {} if kind is not annotation else {"choices": _Flow(arguments)}
        return {"type": _TYPES[type(arguments[0])], **choices}
    return {"type": _TYPES.get(kind, "raw")}


if __name__ == "__main__":
    (ROLE / "meta" / "argument_specs.yml").write_text(specification(), encoding="utf-8")
    (ROLE / "defaults" / "main.yml").write_text(defaults(), encoding="utf-8")
