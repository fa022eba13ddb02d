"""The role `site` declares for Ansible what the model declares for Python."""

import json
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from hpcsite.paths import content_dir
from hpcsite.site.explain import model_in
from hpcsite.site.model import SiteKeys

ROLE = content_dir() / "roles" / "site"
OPTIONS: dict[str, dict[str, Any]] = yaml.safe_load(
    (ROLE / "meta" / "argument_specs.yml").read_text()
)["argument_specs"]["main"]["options"]
DEFAULTS: dict[str, Any] = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())
FIELDS = {f"site_{name}": field for name, field in SiteKeys.model_fields.items()}


def _default(field: FieldInfo) -> object:
    """Default as YAML writes it."""
    return json.loads(json.dumps(field.default, default=list))


def _choices(annotation: object) -> list[str] | None:
    values = [value for value in get_args(annotation) if isinstance(value, str)]
    return values or None


def test_the_keys_are_the_same() -> None:
    assert set(OPTIONS) == set(FIELDS)
    optional = {name for name, field in FIELDS.items() if not field.is_required()}
    assert set(DEFAULTS) == optional


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_default_and_need_are_the_same(name: str) -> None:
    field, option = FIELDS[name], OPTIONS[name]
    assert bool(option.get("required")) == field.is_required()
    if not field.is_required():
        assert DEFAULTS[name] == _default(field)
        assert option.get("default") == _default(field)
    if field.annotation and (choices := _choices(field.annotation)):
        assert option["choices"] == choices


def _nested() -> list[tuple[str, type[BaseModel], dict[str, Any]]]:
    found = []
    for name, option in OPTIONS.items():
        model = model_in(FIELDS[name].annotation)
        if model and option.get("options"):
            found.append((name, model, option["options"]))
    return found


@pytest.mark.parametrize(("name", "model", "options"), _nested(), ids=lambda v: str(v)[:20])
def test_nested_keys_are_the_same(
    name: str, model: type[BaseModel], options: dict[str, Any]
) -> None:
    assert set(options) == set(model.model_fields), name
    for key, field in model.model_fields.items():
        assert bool(options[key].get("required")) == field.is_required(), key
        if not field.is_required():
            assert options[key].get("default") == _default(field), key
        if choices := _choices(field.annotation):
            assert options[key]["choices"] == choices, key


def test_users_groups_and_partitions_are_nested() -> None:
    assert {name for name, _, _ in _nested()} >= {"site_users", "site_groups", "site_partitions"}
