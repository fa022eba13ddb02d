"""The whole model: what follows from keys, and what holds for each of its classes."""

import json
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ValidationError

from hpcsite.site.explain import model_in
from hpcsite.site.model import PATTERNS, HostKeys, SiteKeys
from hpcsite.site.partial import Partial
from tests.unit.site.key_tables import DOCS
from tests.unit.site.mini import SiteFolder
from tests.unit.site.role_spec import fields_of

HOSTS = "hosts.yml"


def test_keys_of_hosts_are_typed_in_the_site(folder: SiteFolder) -> None:
    line = "ansible_host: 10.9.0.21\n"
    folder.edit(HOSTS, line, f"{line}              site_subnet_manager_priority: 3\n")
    site = folder.load()
    assert site.hosts["gpu01"].keys == HostKeys(subnet_manager_priority=3)
    assert site.hosts["gpu02"].keys == HostKeys()


def test_topology_follows_the_switches() -> None:
    assert SiteKeys(name="x").topology == "none"
    switches: dict[str, Any] = {"s1": {"fabric": "ib"}}
    assert SiteKeys.model_validate({"name": "x", "switches": switches}).topology == "tree"
    assert (
        SiteKeys.model_validate(
            {"name": "x", "switches": switches, "slurm_topology": "block"}
        ).topology
        == "block"
    )


def test_a_whole_that_is_wrong_is_not_taken_for_valid() -> None:
    partial = Partial("site_")
    item = {"u": 1, "hosts": "gpu01", "switch": "leaf1"}
    partial.keys({"name": "x", "racks": {"r1": {"units": 42, "contents": [item]}}})
    assert ("site_racks", "r1", "contents", 0) in partial.invalid


def _models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield model
    for field in fields_of(model).values():
        if below := model_in(field.annotation):
            yield from _models(below)


MODELS: tuple[type[BaseModel], ...] = (*dict.fromkeys(_models(SiteKeys)), HostKeys)


def test_every_pattern_is_said_in_words() -> None:
    counts = "^[0-9]+[KMGTP]?$"
    for model in MODELS:
        assert {*_patterns(model.model_json_schema())} <= {*PATTERNS, counts}, model


def _patterns(schema: Any) -> Iterator[str]:  # noqa: ANN401 - whatever JSON can hold
    if isinstance(schema, dict):
        if isinstance(pattern := schema.get("pattern"), str):
            yield pattern
        yield from schema.get("patternProperties", {})
        yield from (found for entry in schema.values() for found in _patterns(entry))
    elif isinstance(schema, list):
        yield from (found for entry in schema for found in _patterns(entry))


def test_models_are_frozen_and_refuse_unknown_keys() -> None:
    for model in MODELS:
        assert model.model_config.get("frozen"), model
        assert model.model_config.get("extra") == "forbid", model


def test_every_example_is_valid() -> None:
    for model in MODELS:
        for name, field in model.model_fields.items():
            for example in field.examples or ():
                assert not _wrong(model, name, example), (model, name)


def _wrong(model: type[BaseModel], name: str, value: object) -> bool:
    """Whether a value is not valid for a field, whatever the others lack."""
    try:
        model.model_validate_json(json.dumps({name: value}), strict=True)
    except ValidationError as error:
        return any(found["loc"][:1] == (name,) for found in error.errors())
    return False


def test_pages_that_hints_name_exist() -> None:
    for page in ("inventory.md", "inventory-keys.md"):
        assert (DOCS / page).is_file()
