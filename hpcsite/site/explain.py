"""The site's keys held against the model; pydantic's errors said in words."""

import json
from typing import Any, TypeVar, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from hpcsite.errors import Location, Problem
from hpcsite.site.draft import HOST_KEYS, PREFIX, Draft, key_text
from hpcsite.site.model import FORM, PATTERNS, HostKeys, SiteKeys
from hpcsite.site.names import did_you_mean, nearest
from hpcsite.site.partial import Partial, plain_type
from hpcsite.site.sources import KeyPath

M = TypeVar("M", bound=BaseModel)

# Rules hold it to more than a type, together with ansible_host, which stands in for it.
_ADDRESS = "site_address"
FIELDS = frozenset(SiteKeys.model_fields)
_TYPES = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping (`name: value` lines)",
    "model_type": "a mapping (`name: value` lines)",
}
_LIMITS = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "more than"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
}
_LENGTHS = ("too_short", "string_too_long")
_PAGE, _KEYS_PAGE = "docs/inventory.md", "docs/inventory-keys.md"
_KEY = "[key]"
_APPENDED = ("str", "int", "float", "bool", _KEY)


def check_keys(draft: Draft) -> list[Problem]:
    """Validate the site's keys; fills `draft` with what is valid, and what is not."""
    raw = {name.removeprefix(PREFIX): value for name, value in draft.raw.items()}
    known = {name: value for name, value in raw.items() if name in FIELDS}
    problems: dict[KeyPath, Problem] = {}
    valid, errors = _validated(SiteKeys, known)
    for error in errors:
        path, problem = _explain(error, known, draft)
        if error["type"] != "missing" or not _is_mistyped(error["loc"], raw):
            problems.setdefault(path, problem)
    partial = Partial(PREFIX)
    part = partial.keys(raw)
    draft.keys = valid or part
    draft.invalid, draft.kept = partial.invalid, partial.kept
    return list(problems.values())


def check_host_keys(draft: Draft) -> list[Problem]:
    """Validate the keys of single hosts; a value that many hosts have of one line is said once."""
    problems: dict[tuple[KeyPath, Location | None], Problem] = {}
    for host, variables in draft.inventory.hosts.items():
        names = [name for name in HOST_KEYS if name in variables and name != _ADDRESS]
        raw = {name.removeprefix(PREFIX): variables[name] for name in names}
        for error in _validated(HostKeys, raw)[1]:
            path, problem = _explain(error, raw, draft, host)
            problems.setdefault((path, problem.where), problem)
    return list(problems.values())


def _validated(model: type[M], raw: dict[str, Any]) -> tuple[M | None, list[ErrorDetails]]:
    """Validate strictly, so that Ansible's templates see the types that Python sees."""
    try:
        return model.model_validate_json(json.dumps(raw), strict=True), []
    except ValidationError as error:
        return None, error.errors(include_url=False)


def _is_mistyped(loc: KeyPath, raw: dict[str, Any]) -> bool:
    """Whether a missing key is there under an unknown name that is reported by itself."""
    siblings: Any = raw
    for step in loc[:-1]:
        siblings = siblings[step]
    known = _fields_at(SiteKeys, loc[:-1])
    return any(nearest(str(name), known) == loc[-1] for name in siblings if name not in known)


def _explain(
    error: ErrorDetails, raw: dict[str, Any], draft: Draft, host: str | None = None
) -> tuple[KeyPath, Problem]:
    kind = error["type"]
    loc = tuple(error["loc"])
    model = HostKeys if host else SiteKeys
    path: KeyPath = (f"{PREFIX}{loc[0]}", *_existing(loc, raw, kind)[1:])
    if kind == "missing":
        return path, _missing(path, draft, _example(model, loc))
    if kind == "extra_forbidden":
        return path, _extra(path, list(_fields_at(model, loc[:-1])), draft, host)
    is_union = path[1:] != loc[1:] and loc[-1] != _KEY
    expected = "text, a number, true or false" if is_union else _expected(error)
    value = error["input"]
    message = f"{key_text(path)} is {_shown(value)}; it must be {expected}"
    hint = _hint(error, path, draft, host) or _written_like(path, _example(model, loc))
    return path, draft.problem(message, path, hint, host, code=_code(error))


def _existing(loc: KeyPath, raw: object, kind: str) -> KeyPath:
    """Take off what pydantic appends for the members of a union and for a mapping's key."""
    if kind != "missing" and loc[-1] in _APPENDED and not _has(raw, loc):
        return loc[:-1]
    return loc


def _has(value: object, loc: KeyPath) -> bool:
    for step in loc:
        listed = isinstance(value, list) and isinstance(step, int) and step < len(value)
        if not listed and not (isinstance(value, dict) and step in value):
            return False
        value = value[step]  # type: ignore[index]
    return True


def _missing(path: KeyPath, draft: Draft, example: str) -> Problem:
    *parent, name = path
    if not parent:
        message, hint = f"{name} is not set", f"set it in group_vars/all, e.g. `{name}: mysite`"
        return draft.problem(message, path, hint, code="HPC1036")
    message = f"{key_text(tuple(parent))} has no {name}"
    like = f", e.g. `{example}`" if example else ""
    hint = f"add `{name}:` to it{like}; {_KEYS_PAGE} says what it is"
    return draft.problem(message, path, hint, code="HPC1036")


def _extra(path: KeyPath, known: list[str], draft: Draft, host: str | None) -> Problem:
    return draft.problem(
        f"unknown key {path[-1]} in {key_text(path[:-1])}",
        path,
        did_you_mean(str(path[-1]), known, f"known here: {', '.join(known)}"),
        host,
        code="HPC1037",
    )


def _fields_at(model: type[BaseModel], loc: KeyPath) -> dict[str, FieldInfo]:
    """Find the fields of the mapping at a place, by following the annotations."""
    annotation: Any = model
    for step in loc:
        kind = plain_type(annotation)
        if get_origin(kind) in (tuple, dict):
            annotation = next(each for each in reversed(get_args(kind)) if each is not Ellipsis)
        elif (found := model_in(kind)) and step in found.model_fields:
            annotation = found.model_fields[str(step)].annotation
    kind = plain_type(annotation)
    below = None if get_origin(kind) in (tuple, dict) else model_in(kind)
    return dict(below.model_fields) if below else {}


def _example(model: type[BaseModel], loc: KeyPath) -> str:
    """Write the example of a key as a line of YAML, for an item that of its list; or nothing."""
    for end in range(len(loc), 0, -1):
        name = str(loc[end - 1])
        if field := _fields_at(model, loc[: end - 1]).get(name):
            return f"{name}: {in_yaml(field.examples[0])}" if field.examples else ""
    return ""


def in_yaml(value: object) -> str:
    """Write a value on one line, with quotes where YAML would read it as something else."""
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=1000)
    return text.removesuffix("\n").removesuffix("\n...")


def model_in(annotation: object) -> type[BaseModel] | None:
    """Find the model in an annotation such as `tuple[User, ...]` or `Lab | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (model_in(argument) for argument in get_args(annotation))
    return next((model for model in found if model), None)


def _expected(error: ErrorDetails) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind in _TYPES:
        return _TYPES[kind]
    if kind in _LIMITS:
        name, words = _LIMITS[kind]
        return f"{words} {context[name]}"
    if kind == "string_pattern_mismatch":
        return PATTERNS[context["pattern"]]
    if kind == "literal_error":
        return f"one of {context['expected']}".replace("'", "")
    if kind == "too_short":
        shape = "mapping" if context["field_type"] == "Dictionary" else "list"
        return f"a {shape} of at least {context['min_length']}"
    if kind == "string_too_long":
        return f"at most {context['max_length']} characters long"
    if kind == FORM:
        return error["msg"]
    if context.get("error"):
        return f"valid: {context['error']}"
    return f"valid: {error['msg']}"


def _code(error: ErrorDetails) -> str:
    """Find the code of a value that is not what its key must be."""
    kind = error["type"]
    if error["input"] is None:
        return "HPC1043"
    if kind in _TYPES:
        return "HPC1038"
    if kind in _LIMITS:
        return "HPC1039"
    if kind == "literal_error":
        return "HPC1041"
    if kind == FORM and isinstance(error["input"], dict):
        return "HPC1044"
    return "HPC1042" if kind in _LENGTHS else "HPC1040"


def _shown(value: object) -> str:
    """Show a value as it would stand in YAML, shortened."""
    if value is None:
        return "empty"
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "a mapping"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _hint(error: ErrorDetails, path: KeyPath, draft: Draft, host: str | None) -> str:
    """Say what to do about a value; empty where only an example can."""
    kind, value = error["type"], error["input"]
    if value is None:
        return "give it a value, or remove the line"
    if kind == "string_type" and not isinstance(value, list | dict):
        return _quote_hint(path, draft, host)
    if kind == "literal_error" and isinstance(value, bool):
        return _quote_hint(path, draft, host)
    if kind in ("int_type", "float_type", "bool_type") and isinstance(value, str):
        return "remove the quotes, or write it as YAML writes it, e.g. 8 or true"
    if kind == "literal_error":
        choices = str(error.get("ctx", {}).get("expected", "")).replace("'", "")
        known = choices.replace(" or ", ", ").split(", ")
        return did_you_mean(str(value), known, "choose one of them")
    return ""


def _written_like(path: KeyPath, example: str) -> str:
    page = _KEYS_PAGE if len(path) > 1 else _PAGE
    if example:
        return f"write it like `{example}`; {page} says what it is"
    return f"{page} lists every key"


def _quote_hint(path: KeyPath, draft: Draft, host: str | None) -> str:
    definition = draft.definition(str(path[0]), host)
    written = definition.scalar(path[1:]) if definition else None
    quoted = f'"{written}"' if written else "quotes"
    return f"YAML reads it as something else than text: write {quoted}"
