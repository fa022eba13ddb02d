"""The JSON Schema: what an editor is told of keys, and that real files hold against it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpcsite import cli
from hpcsite.errors import ExitCode
from hpcsite.paths import content_dir
from hpcsite.site.model import HostKeys, SiteKeys
from hpcsite.site.roles import role_options
from hpcsite.site.schema import DRAFT, site_schema

SCHEMA = site_schema()
INVENTORIES = content_dir() / "inventory"
FILES = sorted(INVENTORIES.glob("*/*_vars/**/*.yml"))


def _below(schema: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - whatever JSON can hold
    if isinstance(schema, dict):
        yield schema
        for entry in schema.values():
            yield from _below(entry)
    elif isinstance(schema, list):
        for entry in schema:
            yield from _below(entry)


def _errors(text: str) -> list[str]:
    """Paths of what a validator of the schema's draft finds in a file of variables."""
    validators = pytest.importorskip("jsonschema.validators")
    found = validators.validator_for(SCHEMA)(SCHEMA).iter_errors(yaml.safe_load(text))
    return [error.json_path for error in found]


def test_keys_of_site_hosts_and_roles_are_all_there() -> None:
    for model in (SiteKeys, HostKeys):
        for name, field in model.model_fields.items():
            assert SCHEMA["properties"][f"site_{name}"]["description"] == field.description
    assert role_options().keys() <= SCHEMA["properties"].keys()
    assert SCHEMA["additionalProperties"] is True


def test_it_is_of_the_draft_that_it_names() -> None:
    assert SCHEMA["$schema"] == DRAFT
    validators = pytest.importorskip("jsonschema.validators")
    validators.validator_for(SCHEMA, default=None).check_schema(SCHEMA)


def test_every_reference_leads_somewhere_and_no_title_repeats_a_name() -> None:
    references = {entry["$ref"] for entry in _below(SCHEMA) if isinstance(entry.get("$ref"), str)}
    assert references
    for reference in references:
        assert reference.removeprefix("#/$defs/") in SCHEMA["$defs"]
    assert not [entry for entry in _below(SCHEMA["$defs"]) if isinstance(entry.get("title"), str)]


def test_each_key_of_a_mapping_has_a_description() -> None:
    for name, definition in SCHEMA["$defs"].items():
        for key, schema in definition["properties"].items():
            assert schema.get("description"), f"{name}.{key}"
        assert definition["additionalProperties"] is False, name


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(INVENTORIES)))
def test_variables_of_the_inventories_hold(path: Path) -> None:
    assert _errors(path.read_text(encoding="utf-8")) == []


def test_the_lab_is_among_the_inventories() -> None:
    assert INVENTORIES / "lab" / "group_vars" / "all" / "slurm.yml" in FILES


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("site_nam: x", "$"),
        ("site_users: [{name: alice}]", "$.site_users[0]"),
        ("site_users: [{name: alice, uid: 12}]", "$.site_users[0].uid"),
        ("site_networks: {Fast: {kind: ethernet, subnet: 10.0.0.0/8}}", "$.site_networks"),
        ("site_racks: {r1: {units: 42, contents: [{u: 1}]}}", "$.site_racks.r1.contents[0]"),
        ("site_subnet_manager_priority: 16", "$.site_subnet_manager_priority"),
        ("site_qos: [{name: high, grp_tres: {mem: 1Q}}]", "$.site_qos[0].grp_tres.mem"),
        ("rdma_mode: token_ring", "$.rdma_mode"),
    ],
)
def test_a_mistake_is_marked(text: str, place: str) -> None:
    assert _errors(text) == [place]


@pytest.mark.parametrize(
    "text",
    [
        "local_thing: {x: 1}",
        "rdma_mode: '{{ local_mode }}'",
        "site_racks: {r1: {units: 42, contents: [{switch: leaf1, u: 1}]}}",
        "site_software: {slurm: '24.11.5', kernel: null}",
        "site_addresses: {ib: 10.2.0.1}",
        "",
    ],
)
def test_what_is_right_is_not_marked(text: str) -> None:
    assert _errors(text) == []


def test_the_command_prints_it_and_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "schema.json"
    for arguments in ((), ("--out", str(target))):
        monkeypatch.setattr("sys.argv", ["hpcsite", "schema", *arguments])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        assert (stop.value.code or 0) == ExitCode.OK
    assert json.loads(capsys.readouterr().out) == SCHEMA
    assert json.loads(target.read_text(encoding="utf-8")) == SCHEMA
