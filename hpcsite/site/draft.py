"""A site description while it is being checked: what is valid of it, and where it stands."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from hpcsite.errors import Location, Problem
from hpcsite.site.folder import Kind
from hpcsite.site.inventory import Inventory
from hpcsite.site.model import SiteKeys
from hpcsite.site.sources import ALL, Definition, KeyPath, Sources, matches

HOST_KEYS = ("site_address", "site_lab_gpus")
PREFIX = "site_"


def key_text(path: KeyPath) -> str:
    """Write a path as people do: `site_partitions[0].name`."""
    head, *rest = path
    return str(head) + "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in rest)


@dataclass
class Draft:
    """What the rules look at.

    `keys` holds only the entries that are valid by themselves, `kept` their numbers in the lists
    of the inventory, so that a mistake in one entry does not hide those of the others.
    """

    path: Path
    inventory: Inventory
    sources: Sources
    keys: SiteKeys
    kept: dict[str, list[int]] = field(default_factory=dict)

    @cached_property
    def raw(self) -> dict[str, Any]:
        """The site-wide `site_*` variables, unchecked, by their whole names."""
        found: dict[str, Any] = {}
        for variables in self.inventory.hosts.values():
            for name, value in variables.items():
                if name.startswith(PREFIX) and name not in HOST_KEYS:
                    found.setdefault(name, value)
        return found

    def entries(self, key: str) -> Iterator[tuple[int, Any]]:
        """Pair the valid entries of a list such as `users` with their numbers in the inventory."""
        values = getattr(self.keys, key)
        return zip(self.kept.get(key, range(len(values))), values, strict=True)

    def names(self, key: str) -> list[str] | None:
        """Names in a list or mapping of the inventory, valid or not; None if it is neither."""
        value = self.raw.get(PREFIX + key, [])
        if isinstance(value, dict):
            return [str(name) for name in value]
        if isinstance(value, list):
            return [str(e["name"]) for e in value if isinstance(e, dict) and "name" in e]
        return None

    def definition(self, variable: str, host: str | None = None) -> Definition | None:
        """Find the definition of a variable that counts: for the site, or for one host."""
        ranked = [
            (self._rank(definition, host), number, definition)
            for number, definition in enumerate(self.sources.of(variable))
        ]
        usable = [entry for entry in ranked if entry[0] >= 0]
        return max(usable, key=lambda entry: entry[:2])[2] if usable else None

    def where(self, path: KeyPath, host: str | None = None) -> Location:
        """Find where an element of a variable stands; else the host; else the folder."""
        definition = self.definition(str(path[0]), host)
        if definition:
            return definition.locate(path[1:])
        found = self.sources.where_host(host) if host else None
        return found or Location(self.path)

    def by_line(
        self, hosts: Iterable[str], variable: str | None = None
    ) -> Iterator[tuple[Location, list[str]]]:
        """Group hosts by where they stand, or by where a variable of theirs is set.

        What 100 hosts of one line have in common is one mistake, not 100.
        """
        lines: dict[Location, list[str]] = {}
        for host in hosts:
            where = (
                self.where((variable,), host)
                if variable
                else self.sources.where_host(host) or Location(self.path)
            )
            lines.setdefault(where, []).append(host)
        yield from lines.items()

    def problem(self, message: str, path: KeyPath, hint: str, host: str | None = None) -> Problem:
        """Make a problem of a variable's element."""
        return Problem(message, self.where(path, host), hint, key_text(path))

    def host_problem(self, message: str, host: str, hint: str) -> Problem:
        """Make a problem of a host."""
        where = self.sources.where_host(host) or Location(self.path)
        return Problem(message, where, hint, host)

    def group_problem(self, message: str, group: str, hint: str) -> Problem:
        """Make a problem of a group."""
        where = self.sources.where_group(group) or Location(self.path)
        return Problem(message, where, hint, group)

    def _rank(self, definition: Definition, host: str | None) -> int:
        """Rank definitions by Ansible's precedence; -1: not for this host."""
        scope = definition.scope
        if host is None:
            return int(scope == ALL)
        if scope.kind is Kind.HOST_VARS:
            return 1000 if matches(scope.name, host) else -1
        if scope.name == "all":
            return 0
        if host not in self.inventory.groups.get(scope.name, frozenset()):
            return -1
        return 1 + len(self.inventory.parents[scope.name])
