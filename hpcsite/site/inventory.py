"""`ansible-inventory`, run and read: groups, hosts and variables as Ansible sees them."""

import json
import os
import re
import signal
import subprocess
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from hpcsite.errors import CouldNotRunError, InvalidSiteError, Location, Problem
from hpcsite.site.ansible import ansible_environment, tools_dir
from hpcsite.site.merge import Layers, merged
from hpcsite.site.sources import Sources

# The export of 2,000 hosts takes some 10 s; a busy computer needs a multiple of that.
TIMEOUT_S = 120
# The plain list repeats everything for every host: it takes so much more for each.
TIMEOUT_PER_HOST_S = 0.5
# Settings by which Ansible merges otherwise than `hpcsite.site.merge` does, or merges more.
_MERGED_OTHERWISE = frozenset(
    f"ANSIBLE_{name}"
    for name in (
        *("PRECEDENCE", "HASH_BEHAVIOUR", "TRANSFORM_INVALID_GROUP_CHARS", "YAML_FILENAME_EXT"),
        *("RUN_VARS_PLUGINS", "VARS_PLUGIN_STAGE", "VARS_ENABLED", "VARS_PLUGINS"),
        *("PLAYBOOK_DIR", "CACHE_PLUGIN", "INJECT_FACT_VARS"),
    )
)
_IMPLICIT = ("all", "ungrouped")
_REFUSED = re.compile(r"Failed to parse \S+ with '?(?P<plugin>\w+)'? plugin: (?P<reason>.+)")
_SOURCE = re.compile(
    r"(?:parse inventory source|Unable to parse) (?P<path>/.+?)(?: as an .*)?$", re.M
)
_WHERE = re.compile(r"(?P<path>/[^\n'\":]+):(?P<line>\d+)(?::\d+)?$", re.MULTILINE)


@dataclass(frozen=True)
class Inventory:
    """An inventory as Ansible resolved it.

    Hosts share the values that they have in common: nobody changes them.
    """

    hosts: dict[str, dict[str, Any]] = field(default_factory=dict)
    groups: dict[str, frozenset[str]] = field(default_factory=dict)
    parents: dict[str, frozenset[str]] = field(default_factory=dict)

    def groups_of(self, host: str) -> frozenset[str]:
        """List the groups that a host belongs to, directly or through a child; without `all`."""
        return self._groups_of.get(host, frozenset())

    @cached_property
    def _groups_of(self) -> dict[str, frozenset[str]]:
        found: dict[str, list[str]] = {}
        for name, members in self.groups.items():
            for host in members:
                found.setdefault(host, []).append(name)
        # Hosts in the same groups share one set.
        sets: dict[frozenset[str], frozenset[str]] = {}
        fresh = ((host, frozenset(names)) for host, names in found.items())
        return {host: sets.setdefault(groups, groups) for host, groups in fresh}


def read_inventory(path: Path, sources: Sources | None = None) -> Inventory:
    """Run `ansible-inventory` on a folder.

    With the map of the folder's sources it is asked for the variables of each group once, which
    takes it seconds where the plain list takes minutes; without, or where the map leaves open how
    Ansible would merge them, for the plain list.

    Raises `InvalidSiteError` with what Ansible says of the folder, `CouldNotRunError` when the
    tool does not run or does not end in time.
    """
    if sources is None:
        return parse_inventory(_listed(path, TIMEOUT_S))
    data = _listed(path, TIMEOUT_S, "--export")
    as_usual = _MERGED_OTHERWISE.isdisjoint(os.environ)
    variables = merged(data, Layers(path, sources)) if as_usual else None
    if variables is None:
        hosts = {host for name in data if name != "_meta" for host in data[name].get("hosts", ())}
        return parse_inventory(_listed(path, TIMEOUT_S + len(hosts) * TIMEOUT_PER_HOST_S))
    return parse_inventory({**data, "_meta": {"hostvars": variables}})


def _listed(path: Path, timeout_s: float, *options: str) -> dict[str, Any]:
    """Give what `ansible-inventory --list` prints."""
    tool = str(tools_dir() / "ansible-inventory")
    argv = [tool, "--inventory", str(path.absolute()), "--list", *options]
    try:
        code, output, complaints = _run(argv, timeout_s)
    except subprocess.TimeoutExpired as error:
        raise CouldNotRunError(
            f"ansible-inventory did not end within {timeout_s:.0f} s on {path}",
            hint="an inventory script or plugin in the folder may be waiting for something",
        ) from error
    except OSError as error:
        raise CouldNotRunError(
            f"ansible-inventory cannot be started: {error.strerror}",
            hint=f"check {tool}",
        ) from error
    if code:
        raise InvalidSiteError([_ansible_problem(path, complaints)])
    found: dict[str, Any] = json.loads(output)
    return found


def _run(argv: list[str], timeout_s: float) -> tuple[int, bytes, str]:
    """Run a tool in a session of its own, so that what it started ends with it."""
    with subprocess.Popen(
        argv,
        # The option alone says whether the list is an export.
        env=ansible_environment() | {"ANSIBLE_INVENTORY_EXPORT": "false"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            output, complaints = process.communicate(timeout=timeout_s)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, output, complaints.decode(errors="replace")


def parse_inventory(data: dict[str, Any]) -> Inventory:
    """Turn the JSON of `ansible-inventory --list` into an `Inventory`."""
    children = {
        name: frozenset(entry.get("children", ())) - {"ungrouped"}
        for name, entry in data.items()
        if name != "_meta"
    }
    direct = {name: frozenset(entry.get("hosts", ())) for name, entry in data.items()}
    groups = {
        name: _members(name, children, direct)
        for name in sorted({*children, *(child for all_ in children.values() for child in all_)})
        if name not in _IMPLICIT
    }
    hosts = data.get("_meta", {}).get("hostvars", {})
    order = _inventory_order(data)
    return Inventory(
        hosts={name: hosts.get(name, {}) for name in order},
        groups=groups,
        parents={name: _parents(name, children) for name in groups},
    )


def _inventory_order(data: dict[str, Any]) -> list[str]:
    """Every host once, in the order in which the groups list them."""
    ordered: dict[str, None] = {}

    def visit(group: str) -> None:
        entry = data.get(group, {})
        ordered.update(dict.fromkeys(entry.get("hosts", ())))
        for child in entry.get("children", ()):
            visit(child)

    visit("all")
    return list(ordered)


def _members(
    group: str, children: dict[str, frozenset[str]], direct: dict[str, frozenset[str]]
) -> frozenset[str]:
    """Hosts of a group and of every group below it. Ansible itself refuses loops."""
    below = (_members(child, children, direct) for child in children.get(group, ()))
    return direct.get(group, frozenset()).union(*below)


def _parents(group: str, children: dict[str, frozenset[str]]) -> frozenset[str]:
    """Every group above a group; without `all`."""
    above = {name for name, below in children.items() if group in below and name not in _IMPLICIT}
    return frozenset(above).union(*(_parents(name, children) for name in above))


def _ansible_problem(path: Path, stderr: str) -> Problem:
    """Pick the part of Ansible's complaint that says what is wrong."""
    refused = {m["plugin"]: m["reason"] for m in _REFUSED.finditer(stderr)}
    source = _SOURCE.search(stderr)
    file = Path(source["path"]) if source else None
    if file and refused:
        # Ansible tries one form after the other; the suffix says which of them was meant.
        plugin = "yaml" if file.suffix in (".yml", ".yaml", ".json") else "ini"
        reason = refused.get(plugin) or list(refused.values())[-1]
    else:
        errors = re.findall(r"^(?:\[ERROR\]:?|ERROR!)\s*(.+)$", stderr, re.MULTILINE)
        reason = errors[0] if errors else stderr.strip().rpartition("\n")[2] or "no reason given"
    found = _WHERE.search(stderr)
    where = Location(Path(found["path"]), int(found["line"])) if found else Location(file or path)
    return Problem(
        f"Ansible cannot read this: {reason}",
        _as_given(where, path),
        hint=f"see all that Ansible says: ansible-inventory -i {path} --list",
        code="HPC1025",
    )


def _as_given(where: Location, path: Path) -> Location:
    """Name a file of the inventory as the user named the folder."""
    root = path.absolute()
    if where.path.is_relative_to(root):
        return Location(path / where.path.relative_to(root), where.line)
    return where
