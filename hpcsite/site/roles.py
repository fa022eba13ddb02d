"""The variables of the roles, as their `meta/argument_specs.yml` declare them."""

from collections.abc import Iterator
from typing import Any

import yaml

from hpcsite.paths import content_dir
from hpcsite.site.draft import key_text
from hpcsite.site.names import did_you_mean
from hpcsite.site.sources import KeyPath

Option = dict[str, Any]
# Where, what is wrong, what to do, and the code.
Finding = tuple[KeyPath, str, str, str]
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PYTHON: dict[str, tuple[type, ...]] = {
    "str": (str, int, float),
    "path": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "list": (list,),
    "dict": (dict,),
}
_WORDS = {
    "str": "text",
    "path": "a path",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "list": "a list",
    "dict": "a mapping",
}


def role_options() -> dict[str, Option]:
    """Every public variable of every role, from all entry points; private ones begin with __."""
    found: dict[str, Option] = {}
    for path in sorted(content_dir().glob("roles/*/meta/argument_specs.yml")):
        with path.open(encoding="utf-8") as stream:
            # A SafeLoader either way; its C twin is ten times as fast.
            document = yaml.load(stream, Loader=_LOADER) or {}  # noqa: S506
        for entry in document.get("argument_specs", {}).values():
            found.update(entry.get("options") or {})
    return {name: option for name, option in found.items() if not name.startswith("__")}


def value_problems(option: Option, value: object, path: KeyPath) -> Iterator[Finding]:
    """Find where a value departs from its option. Templates are Ansible's affair and pass."""
    if isinstance(value, str) and ("{{" in value or "{%" in value):
        return
    if isinstance(value, dict) and "__ansible_vault" in value:
        return
    kind = str(option.get("type", "str"))
    if value is None or kind not in _PYTHON:
        return
    allowed = _PYTHON[kind]
    if not isinstance(value, allowed) or (isinstance(value, bool) and kind != "bool"):
        message = f"{key_text(path)} must be {_WORDS[kind]}"
        yield path, message, "docs/inventory.md lists every key", "HPC1038"
        return
    choices = option.get("choices")
    if choices and value not in choices:
        names = [str(choice) for choice in choices]
        yield (
            path,
            f"{key_text(path)} is {value}; it must be one of {', '.join(names)}",
            did_you_mean(str(value), names, "choose one of them"),
            "HPC1041",
        )
    yield from _nested(option, value, path)


def _nested(option: Option, value: object, path: KeyPath) -> Iterator[Finding]:
    if isinstance(value, list):
        element = {**option, "type": option.get("elements", "raw"), "choices": None}
        for number, entry in enumerate(value):
            yield from value_problems(element, entry, (*path, number))
    elif isinstance(value, dict) and option.get("options"):
        yield from _mapping(option["options"], value, path)


def _mapping(options: dict[str, Option], value: dict[str, Any], path: KeyPath) -> Iterator[Finding]:
    for name, entry in value.items():
        if name in options:
            yield from value_problems(options[name], entry, (*path, name))
        else:
            yield (
                (*path, name),
                f"unknown key {name} in {key_text(path)}",
                did_you_mean(name, options, f"known here: {', '.join(options)}"),
                "HPC1037",
            )
    for name, option in options.items():
        if option.get("required") and name not in value:
            yield path, f"{key_text(path)} has no {name}", f"add `{name}:` to it", "HPC1036"
