"""What `ansible-inventory --list --export` says, merged for each host as Ansible merges it.

The export names each group's variables once, where the plain list repeats them for every host.
Ansible merges in this order, the last wins (its VARIABLE_PRECEDENCE, as it is by default):
variables of `all` in inventory files, of other groups in inventory files, group_vars/all,
group_vars/ of other groups, and what the host has of its own. Groups of one step go by depth,
`ansible_group_priority` and name.

So a group has two layers, its inventory files and its group_vars/, and the export joins them.
Nothing is lost by that: of one group, group_vars/ always beats the inventory files. But which of
the two a variable is of decides whether it beats another group's.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

from hpcsite.site.folder import Kind
from hpcsite.site.sources import Sources

PRIORITY = "ansible_group_priority"
_Variables = dict[str, Any]


class Layer(Enum):
    """Where a group has a variable from."""

    FILES = "inventory files"
    FOLDER = "group_vars"


class UnclearError(Exception):
    """A variable may be of either layer, and which of them matters."""


@dataclass(frozen=True)
class Layers:
    """Tells the two layers of a group apart, by the map of the folder's sources."""

    folder: Path
    sources: Sources

    def of(self, group: str, variable: str, *, alone: bool = False) -> Layer:
        """Say which layer's value the export shows; with `alone`, no other may have one.

        Raises `UnclearError` where encrypted files or inventory scripts leave that open.
        """
        known = self._known.get((group, variable), frozenset())
        in_files = Layer.FILES in known or bool(self.sources.opaque)
        if Layer.FOLDER in known and not (alone and in_files):
            return Layer.FOLDER
        in_folder = Layer.FOLDER in known or group in self._encrypted
        if in_files == in_folder:
            raise UnclearError
        return Layer.FILES if in_files else Layer.FOLDER

    @cached_property
    def _known(self) -> dict[tuple[str, str], frozenset[Layer]]:
        known: dict[tuple[str, str], frozenset[Layer]] = {}
        for definition in self.sources.definitions:
            if definition.scope.kind is Kind.GROUP_VARS:
                key = (definition.scope.name, definition.name)
                layer = self._layer(definition.where.path)
                known[key] = known.get(key, frozenset()) | {layer}
        return known

    @cached_property
    def _encrypted(self) -> frozenset[str]:
        """Groups that have an encrypted file in group_vars/."""
        top = self.folder / Kind.GROUP_VARS.value
        inside = [path.relative_to(top) for path in self.sources.encrypted if self._is_vars(path)]
        return frozenset(
            path.parts[0] if len(path.parts) > 1 else path.name.removesuffix(path.suffix)
            for path in inside
        )

    def _layer(self, path: Path) -> Layer:
        return Layer.FOLDER if self._is_vars(path) else Layer.FILES

    def _is_vars(self, path: Path) -> bool:
        return path.is_relative_to(self.folder / Kind.GROUP_VARS.value)


def merged(data: dict[str, Any], layers: Layers) -> dict[str, _Variables] | None:
    """Give every host's variables; None where only the plain list can tell.

    Values are shared between hosts: nobody may change them.
    """
    groups = {name: entry for name, entry in data.items() if name != "_meta"}
    try:
        steps = _Steps({name: entry.get("vars", {}) for name, entry in groups.items()}, layers)
    except UnclearError:
        return None
    tree = _Tree({name: entry.get("children", ()) for name, entry in groups.items()})
    own: dict[str, _Variables] = data.get("_meta", {}).get("hostvars", {})
    direct: dict[str, list[str]] = {}
    for name, entry in groups.items():
        for host in entry.get("hosts", ()):
            direct.setdefault(host, []).append(name)
    # Most hosts are in the same groups as many others.
    alike: dict[frozenset[str], _Variables] = {}
    found: dict[str, _Variables] = {}
    for host, names in direct.items():
        above = frozenset(names).union(*(tree.above(name) for name in names))
        if above not in alike:
            alike[above] = steps.merged(above, tree.depth)
        shared = alike[above]
        # Sorted by name, as the plain list is.
        found[host] = dict(sorted({**shared, **own[host]}.items())) if host in own else shared
    return found


class _Tree:
    """How groups lie below each other; Ansible refuses loops."""

    def __init__(self, children: dict[str, Iterable[str]]) -> None:
        self._parents: dict[str, list[str]] = {}
        for name, below in children.items():
            for child in below:
                self._parents.setdefault(child, []).append(name)
        self._above: dict[str, frozenset[str]] = {}
        self._depths: dict[str, int] = {}

    def above(self, group: str) -> frozenset[str]:
        """Every group above a group."""
        if group not in self._above:
            parents = self._parents.get(group, ())
            self._above[group] = frozenset(parents).union(*map(self.above, parents))
        return self._above[group]

    def depth(self, group: str) -> int:
        """Length of the longest way down from `all`."""
        if group not in self._depths:
            parents = self._parents.get(group, ())
            self._depths[group] = 1 + max(map(self.depth, parents), default=-1)
        return self._depths[group]


class _Steps:
    """The variables of all groups by layer, and the priorities of the groups."""

    def __init__(self, variables: dict[str, _Variables], layers: Layers) -> None:
        times = Counter(name for own in variables.values() for name in own)
        self._priorities: dict[str, int] = {}
        self._layers: dict[Layer, dict[str, _Variables]] = {layer: {} for layer in Layer}
        for group, own in variables.items():
            for name, value in own.items():
                if name == PRIORITY and layers.of(group, name, alone=True) is Layer.FILES:
                    # Ansible takes it out of the variables only in inventory files.
                    self._priorities[group] = int(value)
                    continue
                # What one group alone has is never in another's way.
                layer = layers.of(group, name) if times[name] > 1 else Layer.FOLDER
                self._layers[layer].setdefault(group, {})[name] = value

    def merged(self, groups: frozenset[str], depth: Callable[[str], int]) -> _Variables:
        """Merge what a host of these groups has of them, sorted by name."""
        order = sorted(
            groups - {"all"}, key=lambda name: (depth(name), self._priorities.get(name, 1), name)
        )
        found: _Variables = {}
        for layer in Layer:
            for group in ("all", *order):
                found |= self._layers[layer].get(group, {})
        return dict(sorted(found.items()))
