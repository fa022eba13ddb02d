"""A site description while it is being checked: what is valid of it, and where it stands."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from hpcsite.errors import Location, Problem
from hpcsite.site.catalogue import Catalogue
from hpcsite.site.folder import Kind
from hpcsite.site.inventory import Inventory
from hpcsite.site.model import HostKeys, NodeGroup, SiteKeys
from hpcsite.site.sources import ALL, Definition, KeyPath, Sources

PREFIX = "site_"
HOST_KEYS = tuple(PREFIX + name for name in HostKeys.model_fields)


def key_text(path: KeyPath) -> str:
    """Write a path as people do: `site_partitions[0].name`."""
    head, *rest = path
    return str(head) + "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in rest)


@dataclass
class Draft:
    """What the rules look at.

    `keys` holds only what is valid by itself, `invalid` the paths of the rest, and `kept` the
    numbers that the items of a list have in the inventory, so that a mistake in one place does not
    hide those in others. A rule asks for the fields that it depends on.

    `keys.node_groups` has what the hardware profiles of `catalogue` fill in; `declared` has the
    same groups as they stand in the inventory.
    """

    path: Path
    inventory: Inventory
    sources: Sources
    keys: SiteKeys
    invalid: set[KeyPath] = field(default_factory=set)
    kept: dict[KeyPath, list[int]] = field(default_factory=dict)
    catalogue: Catalogue = field(default_factory=Catalogue)
    declared: dict[str, NodeGroup] = field(default_factory=dict)
    _found: dict[tuple[str, frozenset[str]], Definition | None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @cached_property
    def raw(self) -> dict[str, Any]:
        """The site-wide `site_*` variables, unchecked, by their whole names."""
        found: dict[str, Any] = {}
        for variables in self.inventory.hosts.values():
            for name, value in variables.items():
                if name.startswith(PREFIX) and name not in HOST_KEYS:
                    found.setdefault(name, value)
        return found

    def entries(self, key: str, *fields: str) -> Iterator[tuple[int, Any]]:
        """Pair the entries of a list such as `users` with their numbers in the inventory.

        An entry with a mistake in one of the fields is left out.
        """
        path = (PREFIX + key,)
        for number, entry in self.numbered(path, getattr(self.keys, key)):
            if self.invalid.isdisjoint((*path, number, name) for name in fields):
                yield number, entry

    def numbered(self, path: KeyPath, values: tuple[Any, ...]) -> Iterator[tuple[int, Any]]:
        """Pair the valid items of any list with their numbers in the inventory."""
        return zip(self.kept.get(path, range(len(values))), values, strict=True)

    def is_whole(self, key: str, *fields: str) -> bool:
        """Whether a key is valid, and so are these fields, and all below them, of each entry."""
        found = [path for path in self.invalid if path[0] == PREFIX + key]
        return not any(len(path) < 3 or path[2] in fields for path in found)

    def called(self, key: str, number: int) -> str:
        """Name of an entry, valid or not, as a message calls it."""
        name = self.raw[PREFIX + key][number].get("name")
        return name if isinstance(name, str) else key_text((PREFIX + key, number))

    def names(self, key: str) -> list[str] | None:
        """Names in a list or mapping of the inventory, valid or not; None if not all are known."""
        value = self.raw.get(PREFIX + key, [])
        if (PREFIX + key,) in self.invalid:
            return None
        if isinstance(value, dict):
            return [str(name) for name in value]
        if all(isinstance(entry, dict) and "name" in entry for entry in value):
            return [str(entry["name"]) for entry in value]
        return None

    def definition(self, variable: str, host: str | None = None) -> Definition | None:
        """Find the definition of a variable that counts: for the site, or for one host."""
        if host is not None and (own := self.sources.for_host(variable, host)):
            return own
        # One answer for all hosts of the same groups.
        groups = self.inventory.groups_of(host) if host is not None else frozenset()
        if (variable, groups) not in self._found:
            self._found[variable, groups] = self._group_definition(variable, groups)
        return self._found[variable, groups]

    def _group_definition(self, variable: str, groups: frozenset[str]) -> Definition | None:
        usable = [
            definition
            for definition in self.sources.for_groups(variable)
            if definition.scope == ALL or definition.scope.name in groups
        ]
        # Of equals, the last.
        return max(reversed(usable), key=self._rank, default=None)

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

    def problem(
        self, message: str, path: KeyPath, hint: str, host: str | None = None, *, code: str
    ) -> Problem:
        """Make a problem of a variable's element."""
        where = self.where(path, host)
        return Problem(message, where, hint, key_text(path), code=code, host=host or "")

    def host_problem(self, message: str, host: str, hint: str, *, code: str) -> Problem:
        """Make a problem of a host."""
        where = self.sources.where_host(host) or Location(self.path)
        return Problem(message, where, hint, host, code=code, host=host)

    def group_problem(self, message: str, group: str, hint: str, *, code: str) -> Problem:
        """Make a problem of a group."""
        where = self.sources.where_group(group) or Location(self.path)
        return Problem(message, where, hint, group, code=code)

    def _rank(self, definition: Definition) -> tuple[bool, int]:
        """Rank definitions for groups by Ansible's precedence, as `hpcsite.site.merge` has it."""
        scope = definition.scope
        in_folder = definition.where.path.is_relative_to(self.path / Kind.GROUP_VARS.value)
        depth = 0 if scope == ALL else 1 + len(self.inventory.parents.get(scope.name, ()))
        return in_folder, depth
