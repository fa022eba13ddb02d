"""The role `site` declares for Ansible what the model declares for Python."""

from collections.abc import Iterator
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel

from hpcsite.site.explain import model_in
from hpcsite.site.model import SiteKeys
from tests.unit.site.role_spec import ROLE, default_of, defaults, plain, specification

SPECIFICATION = (ROLE / "meta" / "argument_specs.yml").read_text(encoding="utf-8")
OPTIONS: dict[str, dict[str, Any]] = yaml.safe_load(SPECIFICATION)["argument_specs"]["main"][
    "options"
]
DEFAULTS_FILE = (ROLE / "defaults" / "main.yml").read_text(encoding="utf-8")
DEFAULTS: dict[str, Any] = yaml.safe_load(DEFAULTS_FILE)
FIELDS = {f"site_{name}": field for name, field in SiteKeys.model_fields.items()}


def test_files_are_those_made_from_the_model() -> None:
    again = "run: python -m tests.unit.site.role_spec"
    assert specification() == SPECIFICATION, again
    assert defaults() == DEFAULTS_FILE, again


def test_the_keys_are_the_same() -> None:
    assert set(OPTIONS) == set(FIELDS)
    optional = {name for name, field in FIELDS.items() if not field.is_required()}
    assert set(DEFAULTS) == optional


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_default_and_need_are_the_same(name: str) -> None:
    field, option = FIELDS[name], OPTIONS[name]
    assert bool(option.get("required")) == field.is_required()
    if not field.is_required():
        assert DEFAULTS[name] == default_of(field)
        assert option.get("default") == default_of(field)
    if choices := _choices(field.annotation):
        assert option["choices"] == choices


def _choices(annotation: object) -> list[str] | None:
    values = [value for value in get_args(annotation) if isinstance(value, str)]
    return values or None


Place = tuple[str, type[BaseModel], dict[str, Any]]


def _nested(place: str, annotation: object, option: dict[str, Any]) -> Iterator[Place]:
    """Find all models that stand below an option; Ansible cannot describe those of a mapping."""
    model = model_in(annotation)
    if model is None or "options" not in option:
        return
    yield place, model, option["options"]
    for name, field in model.model_fields.items():
        yield from _nested(f"{place}.{name}", field.annotation, option["options"].get(name, {}))


NESTED = [
    place
    for name, option in OPTIONS.items()
    for place in _nested(name, FIELDS[name].annotation, option)
]


@pytest.mark.parametrize(("place", "model", "options"), NESTED, ids=[n[0] for n in NESTED])
def test_nested_keys_are_the_same(
    place: str, model: type[BaseModel], options: dict[str, Any]
) -> None:
    assert set(options) == set(model.model_fields), place
    for key, field in model.model_fields.items():
        assert bool(options[key].get("required")) == field.is_required(), key
        if not field.is_required():
            assert options[key].get("default") == default_of(field), key
        if choices := _choices(field.annotation):
            assert options[key]["choices"] == choices, key


def test_lists_and_mappings_of_models_are_nested() -> None:
    assert {place for place, _, _ in NESTED} >= {
        "site_users",
        "site_partitions",
        "site_monitoring.receivers",
        "site_lustre.osts",
        "site_beegfs.storage",
        "site_software",
    }


def test_a_key_that_may_be_empty_has_no_choices_in_ansible() -> None:
    topology = FIELDS["site_slurm_topology"].annotation
    assert plain(topology) is not topology
    assert "choices" not in OPTIONS["site_slurm_topology"]
