"""JSON Schema of an inventory's variables, for editors: site keys, host keys, roles' variables."""

from typing import Any

from pydantic.json_schema import models_json_schema

from hpcsite.site.draft import PREFIX
from hpcsite.site.model import HostKeys, SiteKeys
from hpcsite.site.roles import Option, role_options

Schema = dict[str, Any]
DRAFT = "https://json-schema.org/draft/2020-12/schema"
# Variables of roles may hold templates, which have a value only when Ansible runs.
_TEMPLATE: Schema = {"type": "string", "pattern": r"\{\{|\{%"}
_NULL: Schema = {"type": "null"}
_TYPES: dict[str, Schema] = {
    "str": {"type": ["string", "number"]},
    "path": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
}


def site_schema() -> Schema:
    """Make the schema of one file of group_vars or host_vars.

    No key must be set: a site's keys may be spread over files. Names that begin with `site_` are
    known or wrong; others may be variables of a site's own.
    """
    models = (SiteKeys, HostKeys)
    _, both = models_json_schema([(model, "validation") for model in models])
    definitions = {name: _tidy(schema) for name, schema in both["$defs"].items()}
    properties: Schema = {}
    for model in models:
        own = definitions.pop(model.__name__)["properties"]
        properties |= {PREFIX + name: schema for name, schema in own.items()}
    names = {"anyOf": [{"not": {"pattern": f"^{PREFIX}"}}, {"enum": sorted(properties)}]}
    for name, option in role_options().items():
        if not name.startswith(PREFIX):
            properties[name] = _of_option(option)
    return {
        "$schema": DRAFT,
        "title": "Variables of an hpcsite inventory",
        "description": "A file of group_vars or host_vars; docs/inventory.md is the guide to it.",
        "type": ["object", "null"],
        "properties": properties,
        "propertyNames": names,
        "additionalProperties": True,
        "$defs": definitions,
    }


def _tidy(schema: Any) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """Take off titles, which only repeat names, and close mappings whose names have a pattern."""
    if isinstance(schema, list):
        return [_tidy(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    tidied = {
        # Below `properties`, `title` would be a key.
        key: {name: _tidy(below) for name, below in value.items()}
        if key in ("properties", "patternProperties")
        else _tidy(value)
        for key, value in schema.items()
        if key != "title"
    }
    if "patternProperties" in tidied:
        tidied.setdefault("additionalProperties", False)
    return tidied


def _of_option(option: Option) -> Schema:
    """Translate one option of a role's argument_specs.yml."""
    description = option.get("description", "")
    schema: Schema = {
        "description": " ".join(description) if isinstance(description, list) else description
    }
    if "default" in option:
        schema["default"] = option["default"]
    if kind := _kind(option):
        schema["anyOf"] = [kind, _TEMPLATE, _NULL]
    return schema


def _kind(option: Option) -> Schema:
    """Translate an option's type; empty for one that may be anything."""
    name = option.get("type", "str")
    if name == "list":
        element = {**option, "type": option.get("elements", "raw"), "choices": None}
        items = _kind(element)
        return {"type": "array", **({"items": {"anyOf": [items, _TEMPLATE]}} if items else {})}
    if name == "dict":
        return {"type": "object", **_below(option.get("options"))}
    kind = dict(_TYPES.get(name, {}))
    if option.get("choices"):
        kind["enum"] = option["choices"]
    return kind


def _below(options: dict[str, Option] | None) -> Schema:
    if not options:
        return {}
    needed = [name for name, option in options.items() if option.get("required")]
    return {
        "properties": {name: _of_option(option) for name, option in options.items()},
        "additionalProperties": False,
        **({"required": needed} if needed else {}),
    }
