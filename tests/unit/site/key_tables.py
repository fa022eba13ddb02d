"""The tables of keys and groups in the docs, made from the model.

`python -m tests.unit.site.key_tables` writes them into the pages; a test holds the pages to them.
"""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from hpcsite.paths import content_dir
from hpcsite.site.explain import in_yaml, model_in
from hpcsite.site.groups import FEATURES
from hpcsite.site.model import HostKeys, SiteKeys
from tests.unit.site.role_spec import fields_of, plain

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = DOCS / "inventory.md"
REFERENCE = DOCS / "inventory-keys.md"
_WORDS = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    IPv4Address: "IPv4 address",
    IPv4Network: "IPv4 network",
}
_HEAD = ("| key | type | default | meaning |", "|---|---|---|---|")


def tables() -> dict[str, str]:
    """Text between the markers `<!-- NAME -->` and `<!-- end of NAME -->`, by name."""
    return {
        "groups": _groups(),
        "keys": "\n".join([*_HEAD, *_rows(SiteKeys, "site_", REFERENCE.name)]),
        "host keys": "\n".join([*_HEAD, *_rows(HostKeys, "site_")]),
    }


def with_tables(page: str) -> str:
    """Put the tables into the guide."""
    for name, text in tables().items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        head, _, rest = page.partition(begin)
        page = f"{head}{begin}{text}\n{end}{rest.partition(end)[2]}"
    return page


def reference() -> str:
    """Text of the page that lists what stands below each key."""
    return "\n".join(_reference()) + "\n"


def _groups() -> str:
    lines = ["| group | its hosts become | needs |", "|---|---|---|"]
    for feature in FEATURES.values():
        needs = ", ".join(f"`{need}`" for need in feature.needs)
        one = "; one host" if feature.hosts == 1 else ""
        lines.append(f"| `{feature.name}` | {feature.meaning}{one} | {needs} |")
    left = ", ".join(f"`{feature.name}`" for feature in FEATURES.values() if not feature.deployed)
    if left:
        refused = "a site that has any is checked by `validate`, and refused by `deploy`"
        lines += ["", f"This version does not set up {left} yet: {refused} at once."]
    return "\n".join(lines)


def _role_keys() -> Iterator[str]:
    """Write the keys of each role, but for those of the role `site`, which are above."""
    yield from ("", "## Keys of roles", "")
    yield "They may differ between hosts: set them in `group_vars/` or `host_vars/`. A default from"
    yield "other keys is worked out from these."
    for path in sorted(content_dir().glob("roles/*/meta/argument_specs.yml")):
        role = path.parents[1].name
        specs = yaml.safe_load(path.read_text("utf-8"))["argument_specs"]
        options: dict[str, dict[str, Any]] = {}
        for entry in specs.values():
            options |= entry.get("options") or {}
        public = {
            name: option
            for name, option in sorted(options.items())
            if not name.startswith(("__", "site_"))
        }
        if public:
            yield from ("", f"### {role}", "", *_HEAD)
            yield from (_role_row(name, option) for name, option in public.items())


def _role_row(name: str, option: dict[str, Any]) -> str:
    kind = {"str": "text", "int": "whole number", "bool": "true or false", "path": "path"}.get(
        option.get("type", "str"), option.get("type", "str")
    )
    if choices := option.get("choices"):
        kind = " or ".join(f"`{choice}`" for choice in choices)
    default = option.get("default")
    if option.get("required"):
        said = "must be set"
    elif default is None:
        said = ""
    elif isinstance(default, str) and "{{" in default:
        said = "from other keys"
    else:
        said = f"`{yaml.safe_dump(default, default_flow_style=True).splitlines()[0]}`"
    words = option.get("description", "")
    text = " ".join(words) if isinstance(words, list) else words
    return f"| `{name}` | {kind} | {said} | {' '.join(text.split()).replace('|', chr(92) + '|')} |"


def _reference() -> Iterator[str]:
    yield "# Keys of the site, one by one"
    yield ""
    yield "What stands below the keys that [the site description](inventory.md) lists. `x.y` is the"
    yield "key `y` of the mapping `x`, `x[].y` that of each item of the list `x`, `x.*.y` that of"
    yield "each entry of the mapping `x`, whose names are yours. `hpcsite schema` gives the same to"
    yield "[editors](inventory.md#in-an-editor)."
    for name, field in SiteKeys.model_fields.items():
        if model := model_in(field.annotation):
            yield from ("", f"## site_{name}", "", _kind(field), "", _doc(model), "")
            yield from (*_HEAD, *_deep(model))
    yield from _role_keys()


def _kind(field: FieldInfo) -> str:
    shape = get_origin(plain(field.annotation))
    kind = {tuple: "A list.", dict: "A mapping; the names of its entries are yours."}
    return f"{kind.get(shape, 'A mapping.')} Default: {_default(field) or 'not set'}."


def _deep(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in fields_of(model).items():
        yield _row(f"{prefix}{name}", f"`{prefix}{name}`", field)
        if below := model_in(field.annotation):
            mark = {tuple: "[]", dict: ".*"}.get(get_origin(plain(field.annotation)), "")
            yield from _deep(below, f"{prefix}{name}{mark}.")


def _rows(model: type[BaseModel], prefix: str, page: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        key = f"`{prefix}{name}`"
        if page and model_in(field.annotation):
            key = f"[{key}]({page}#{prefix}{name})"
        yield _row(name, key, field)


def _row(name: str, key: str, field: FieldInfo) -> str:
    assert field.description, name
    examples = ", ".join(f"`{in_yaml(example)}`" for example in field.examples or ())
    meaning = f"{field.description}; e.g. {examples}" if examples else field.description
    kind = _type(field.annotation)
    return f"| {key} | {kind} | {_default(field)} | {meaning} |"


def _doc(model: type[BaseModel]) -> str:
    return " ".join((model.__doc__ or "").split())


def _type(annotation: Any) -> str:  # noqa: ANN401 - annotations have no type of their own
    kind = plain(annotation)
    arguments = get_args(kind)
    origin = get_origin(kind)
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in arguments)
    if origin is tuple:
        return "list" if model_in(kind) else f"list of {_type(arguments[0])}"
    if origin is dict or model_in(kind):
        return "mapping"
    return _WORDS[kind] if kind in _WORDS else " or ".join(_WORDS[each] for each in arguments)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "must be set"
    value = field.default
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if value in ((), {}) or isinstance(value, BaseModel):
        return "empty"
    return f"`{value}`"


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    REFERENCE.write_text(reference(), encoding="utf-8")
