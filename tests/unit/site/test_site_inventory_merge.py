"""Variables merged from Ansible's export are those that Ansible merges itself."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hpcsite.site import inventory
from hpcsite.site.draft import Draft
from hpcsite.site.inventory import Inventory, read_inventory
from hpcsite.site.load import read_sources
from hpcsite.site.merge import Layers, merged
from hpcsite.site.model import SiteKeys
from hpcsite.site.sources import Sources
from tests.unit.site.any_inventory import AnyInventory
from tests.unit.site.mini import SiteFolder

# Each is two runs of the tool; more of them: HPCSITE_INVENTORIES=500.
INVENTORIES = int(os.environ.get("HPCSITE_INVENTORIES", "6"))
X_OF_BOTH = "a: {vars: {local_x: a}}\nb: {vars: {local_x: b}}\n"
HOSTS = "all: {children: {a: {vars: {local_x: file}, hosts: {h: }}}}\n"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Give the options of each run of the tool, as they come."""
    seen: list[tuple[str, ...]] = []
    listed = inventory._listed

    def noted(path: Path, timeout_s: float, *options: str) -> dict[str, Any]:
        seen.append(options)
        return listed(path, timeout_s, *options)

    monkeypatch.setattr(inventory, "_listed", noted)
    return seen


def assert_same(path: Path) -> Inventory:
    """Hold that both ways of reading a folder give the same, in the same order."""
    plain = read_inventory(path)
    fast = read_inventory(path, read_sources(path))
    assert fast == plain
    assert list(fast.hosts) == list(plain.hosts)
    assert all(list(fast.hosts[name]) == list(plain.hosts[name]) for name in plain.hosts)
    return fast


@pytest.mark.parametrize("seed", range(INVENTORIES))
def test_any_inventory_is_merged_as_ansible_does(seed: int, tmp_path: Path) -> None:
    AnyInventory(tmp_path, seed).write()
    assert assert_same(tmp_path).hosts


def test_group_vars_of_all_beat_a_group_in_an_inventory_file(
    tmp_path: Path, asked: list[tuple[str, ...]]
) -> None:
    folder = SiteFolder(tmp_path)
    folder.write("hosts.yml", HOSTS)
    folder.write("group_vars/all.yml", "local_x: folder\n")
    found = read_inventory(tmp_path, read_sources(tmp_path))
    assert found.hosts["h"] == {"local_x": "folder"}
    assert asked == [("--export",)]


@pytest.mark.parametrize("encrypted", ["group_vars/a.yml", "group_vars/a/vault.yml"])
def test_encrypted_variables(
    encrypted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[tuple[str, ...]]
) -> None:
    """An encrypted file may have what the inventory file has too: then only Ansible knows."""
    folder = SiteFolder(tmp_path / "site")
    (tmp_path / "password").write_text("right\n")
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(tmp_path / "password"))
    folder.write("hosts.yml", HOSTS)
    folder.write("group_vars/all.yml", "local_x: folder\nlocal_y: folder\n")
    folder.write(encrypted, "local_x: vault\nlocal_y: vault\n")
    tool = Path(sys.executable).parent / "ansible-vault"
    argv = [str(tool), "encrypt", str(folder.path / encrypted)]
    subprocess.run(argv, check=True, capture_output=True)
    found = read_inventory(folder.path, read_sources(folder.path))
    assert found.hosts["h"] == {"local_x": "vault", "local_y": "vault"}
    assert asked == [("--export",), ()]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("ANSIBLE_HASH_BEHAVIOUR", "merge", {"file": 1, "folder": 2}),
        (
            "ANSIBLE_PRECEDENCE",
            "all_plugins_inventory,groups_plugins_inventory,all_inventory,groups_inventory",
            {"file": 1},
        ),
        ("ANSIBLE_INVENTORY_EXPORT", "true", {"folder": 2}),
    ],
)
def test_settings_by_which_ansible_merges_otherwise(
    name: str, value: str, expected: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    folder = SiteFolder(tmp_path)
    folder.write("hosts.yml", HOSTS.replace("file", "{file: 1}"))
    folder.write("group_vars/all.yml", "local_x: {folder: 2}\n")
    assert assert_same(tmp_path).hosts["h"] == {"local_x": expected}


def test_plain_list_may_take_longer_the_more_hosts_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float] = []
    answer = {"all": {"children": ["a"]}, "a": {"hosts": [f"h{n}" for n in range(1000)]}}

    def noted(_path: Path, timeout_s: float, *_options: str) -> dict[str, Any]:
        given.append(timeout_s)
        return answer

    monkeypatch.setattr(inventory, "_listed", noted)
    monkeypatch.setenv("ANSIBLE_HASH_BEHAVIOUR", "merge")
    assert len(read_inventory(tmp_path, Sources()).hosts) == 1000
    assert given == [inventory.TIMEOUT_S, inventory.TIMEOUT_S + 500]


def layers(folder: Path, **files: str) -> Layers:
    """Map what stands in files; `x__y` is x/y.yml."""
    site = SiteFolder(folder)
    for name, text in files.items():
        site.write(f"{name.replace('__', '/')}.yml", text)
    return Layers(folder, read_sources(folder))


def test_hosts_share_what_they_have_in_common(tmp_path: Path) -> None:
    value = {"large": [1, 2]}
    data = {
        "all": {"children": ["ungrouped", "a"], "vars": {"local_x": value}},
        "a": {"hosts": ["h1", "h2", "h3"]},
        "_meta": {"hostvars": {"h3": {"local_y": 1}}},
    }
    found = merged(data, layers(tmp_path, hosts=HOSTS))
    assert found is not None
    assert found["h1"] is found["h2"]
    assert found["h3"]["local_x"] is value
    assert found["h1"] == {"local_x": value}


def test_group_that_is_deeper_by_its_longest_way_wins(tmp_path: Path) -> None:
    data = {
        "all": {"children": ["x", "b"]},
        "x": {"children": ["y"]},
        "y": {"children": ["b"], "vars": {"local_x": "y"}},
        "b": {"hosts": ["h"], "vars": {"local_x": "b"}},
    }
    text = "all: {children: {y: {vars: {local_x: y}}, b: {vars: {local_x: b}}}}\n"
    assert merged(data, layers(tmp_path, hosts=text)) == {"h": {"local_x": "b"}}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"hosts": "a: {vars: {ansible_group_priority: 5}}\n"}, {"local_x": "a"}),
        (
            {"hosts": "a: {}\n", "group_vars__a": "ansible_group_priority: 5\n"},
            {"local_x": "b", "ansible_group_priority": 5},
        ),
        (
            {
                "hosts": "a: {vars: {ansible_group_priority: 5}}\n",
                "group_vars__a": "ansible_group_priority: 5\n",
            },
            None,
        ),
    ],
)
def test_priority_counts_in_inventory_files_only(
    files: dict[str, str], expected: dict[str, object] | None, tmp_path: Path
) -> None:
    data = {
        "all": {"children": ["a", "b"]},
        "a": {"hosts": ["h"], "vars": {"local_x": "a", "ansible_group_priority": 5}},
        "b": {"hosts": ["h"], "vars": {"local_x": "b"}},
    }
    where = layers(tmp_path, **{"later": X_OF_BOTH, **files})
    assert merged(data, where) == (None if expected is None else {"h": expected})


@pytest.mark.parametrize("twice", [False, True])
def test_variable_without_a_line_is_left_to_ansible_if_two_groups_have_it(
    twice: bool, tmp_path: Path
) -> None:
    data = {
        "all": {"children": ["a"], "vars": {"local_x": 1} if twice else {}},
        "a": {"hosts": ["h"], "vars": {"local_x": 2}},
    }
    where = Layers(tmp_path, Sources())
    assert merged(data, where) == (None if twice else {"h": {"local_x": 2}})


def test_inventory_script_has_what_no_file_has(tmp_path: Path) -> None:
    data = {
        "all": {"children": ["a"], "vars": {"local_x": 1}},
        "a": {"hosts": ["h"], "vars": {"local_x": 2}},
    }
    sources = Sources(opaque=[tmp_path / "script"])
    assert merged(data, Layers(tmp_path, sources)) == {"h": {"local_x": 2}}
    sources = Sources(opaque=[tmp_path / "script"], encrypted=[tmp_path / "group_vars" / "a.yml"])
    assert merged(data, Layers(tmp_path, sources)) is None


def test_definition_that_counts_is_that_of_the_value_that_counts(tmp_path: Path) -> None:
    where = layers(tmp_path, hosts=HOSTS, group_vars__all="local_x: folder\n")
    groups = {"a": frozenset({"h"})}
    found = Inventory(hosts={"h": {}}, groups=groups, parents={"a": frozenset()})
    draft = Draft(tmp_path, found, where.sources, SiteKeys(name="any"))
    assert draft.where(("local_x",), "h").path == tmp_path / "group_vars" / "all.yml"
    (tmp_path / "host_vars").mkdir()
    for name, host in (("h.yml", "h"), ("other.yml", "other")):
        (tmp_path / "host_vars" / name).write_text(f"local_x: {host}\n")
    draft = Draft(tmp_path, found, read_sources(tmp_path), SiteKeys(name="any"))
    assert draft.where(("local_x",), "h").path == tmp_path / "host_vars" / "h.yml"


def test_pattern_of_hosts_counts_by_its_place(tmp_path: Path) -> None:
    text = "all: {hosts: {'h[1:2]': {local_x: 1}, h1: {local_x: 2}, 'h[1:3]': {local_y: 3}}}\n"
    sources = layers(tmp_path, hosts=text).sources
    values = {
        (name, host): definition.scalar(()) if definition else None
        for name in ("local_x", "local_y")
        for host in ("h1", "h2", "g1")
        for definition in [sources.for_host(name, host)]
    }
    assert values == {
        ("local_x", "h1"): "2",
        ("local_x", "h2"): "1",
        ("local_x", "g1"): None,
        ("local_y", "h1"): "3",
        ("local_y", "h2"): "3",
        ("local_y", "g1"): None,
    }
