"""The tables of keys and groups in docs/inventory.md, made from the model.

`python -m tests.unit.site.key_tables` writes them into the page; a test holds the page to them.
"""

from collections.abc import Iterator
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from hpcsite.site.explain import model_in
from hpcsite.site.groups import FEATURES, RESERVED
from hpcsite.site.model import SiteKeys

PAGE = Path(__file__).resolve().parents[3] / "docs" / "inventory.md"
_WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false"}


def tables() -> dict[str, str]:
    """Text between the markers `<!-- NAME -->` and `<!-- end of NAME -->`, by name."""
    return {"groups": _groups(), "keys": "\n".join(_keys())}


def with_tables(page: str) -> str:
    """Put the tables into a page."""
    for name, text in tables().items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        head, _, rest = page.partition(begin)
        page = f"{head}{begin}{text}\n{end}{rest.partition(end)[2]}"
    return page


def _groups() -> str:
    lines = ["| group | its hosts become | needs |", "|---|---|---|"]
    for feature in FEATURES.values():
        needs = ", ".join(f"`{need}`" for need in feature.needs)
        one = "; one host" if feature.hosts == 1 else ""
        lines.append(f"| `{feature.name}` | {feature.meaning}{one} | {needs} |")
    reserved = ", ".join(f"`{name}`" for name in sorted(RESERVED))
    return "\n".join([*lines, "", f"Kept for later versions, and refused until then: {reserved}."])


def _keys() -> Iterator[str]:
    yield from _table("", SiteKeys, "site_")
    for name, field in SiteKeys.model_fields.items():
        if model := model_in(field.annotation):
            yield from ("", f"### site_{name}", "", _doc(model), "")
            yield from _table("", model, "")


def _table(prefix: str, model: type[BaseModel], key_prefix: str) -> Iterator[str]:
    if not prefix:
        yield "| key | type | default | meaning |"
        yield "|---|---|---|---|"
    for name, field in model.model_fields.items():
        key = f"{prefix}{key_prefix}{name}"
        assert field.description, key
        kind, default = _type(field.annotation), _default(field)
        yield f"| `{key}` | {kind} | {default} | {field.description} |"
        below = model_in(field.annotation)
        if below and not key_prefix:
            yield from _table(f"{key}.", below, "")


def _doc(model: type[BaseModel]) -> str:
    return " ".join((model.__doc__ or "").split())


def _type(annotation: Any) -> str:  # noqa: ANN401 - annotations have no type of their own
    arguments = [argument for argument in get_args(annotation) if argument is not type(None)]
    origin = get_origin(annotation)
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in arguments)
    if origin is tuple:
        return f"list of {_type(arguments[0])}" if not model_in(annotation) else "list"
    if origin is dict:
        return "mapping"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "mapping"
    if annotation is IPv4Network:
        return "IPv4 network"
    return _WORDS[annotation] if annotation in _WORDS else _type(arguments[0])


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "must be set"
    value = field.default
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if value in ((), {}):
        return "empty"
    return f"`{value}`"


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
