"""`ansible-inventory --list`, run and read: groups, hosts and variables as Ansible sees them."""

import json
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hpcsite.errors import CouldNotRunError, InvalidSiteError, Location, Problem
from hpcsite.site.ansible import ansible_environment, tools_dir

TIMEOUT_S = 60
_IMPLICIT = ("all", "ungrouped")
_WHERE = re.compile(r"(?P<path>/[^\s'\":]+)(?::| line )(?P<line>\d+)")


@dataclass(frozen=True)
class Inventory:
    """An inventory as Ansible resolved it."""

    hosts: dict[str, dict[str, Any]] = field(default_factory=dict)
    groups: dict[str, frozenset[str]] = field(default_factory=dict)
    parents: dict[str, frozenset[str]] = field(default_factory=dict)

    def groups_of(self, host: str) -> frozenset[str]:
        """List the groups that a host belongs to, directly or through a child; without `all`."""
        return frozenset(name for name, members in self.groups.items() if host in members)


def read_inventory(path: Path) -> Inventory:
    """Run `ansible-inventory` on a folder.

    Raises `InvalidSiteError` with what Ansible says of the folder, `CouldNotRunError` when the
    tool does not run or does not end within `TIMEOUT_S` seconds.
    """
    argv = [str(tools_dir() / "ansible-inventory"), "--inventory", str(path.absolute()), "--list"]
    try:
        done = subprocess.run(
            argv,
            env=ansible_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CouldNotRunError(
            f"ansible-inventory did not end within {TIMEOUT_S} s on {path}",
            hint="an inventory script or plugin in the folder may be waiting for something",
        ) from error
    except OSError as error:
        raise CouldNotRunError(f"ansible-inventory cannot be started: {error}") from error
    if done.returncode:
        raise InvalidSiteError([_ansible_problem(path, done.stderr.decode(errors="replace"))])
    return parse_inventory(json.loads(done.stdout))


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
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("[ERROR]", "ERROR!"))] or lines[-1:]
    message = re.sub(r"^(\[ERROR\]:?|ERROR!)\s*", "", errors[0]) if errors else "no reason given"
    found = _WHERE.search(stderr)
    where = Location(Path(found["path"]), int(found["line"])) if found else Location(path)
    return Problem(
        f"Ansible cannot read the inventory: {message}",
        where,
        hint=f"see all that Ansible says: ansible-inventory -i {path} --list",
    )
