"""Which tree of switches Slurm is told of, from the switches of a site.

Slurm's own advice is to list the leaf switches with their nodes and one switch above them: each
further one makes scheduling slower and placement hardly better (Topology Guide). So what is alike
for placement is one switch here: the leaves of all rails on which the same nodes hang, and the
spines above the same leaves.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from hpcsite.site.model import Fabric, SiteKeys, Switch
from hpcsite.site.names import unfold


@dataclass(frozen=True)
class Leaf:
    """A leaf switch as Slurm sees it; `switches` are the real ones that it stands for."""

    name: str
    nodes: tuple[str, ...]
    switches: tuple[str, ...] = ()


@dataclass(frozen=True)
class Upper:
    """A switch above others, leaves or uppers; `stands_for` are the real ones."""

    name: str
    switches: tuple[str, ...]
    stands_for: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tree:
    """A tree, or several where nothing joins them.

    `missing` are the compute nodes on none of its leaves. A switch stands after those below it.
    """

    fabrics: tuple[str, ...] = ()
    leaves: tuple[Leaf, ...] = ()
    uppers: tuple[Upper, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def roots(self) -> tuple[str, ...]:
        """Switches with none above them; more than one: parts that nothing joins."""
        below = {name for upper in self.uppers for name in upper.switches}
        names = [*(leaf.name for leaf in self.leaves), *(upper.name for upper in self.uppers)]
        return tuple(name for name in names if name not in below)


def slurm_tree(keys: SiteKeys, compute: Iterable[str]) -> Tree:
    """Find the tree of the compute nodes, in the order in which these are given.

    Nodes that are not in the fabric with most bandwidth are placed by another one that they are in,
    such as the Ethernet of nodes without InfiniBand.
    """
    missing = tuple(dict.fromkeys(compute))
    tree = Tree(missing=missing)
    while fabric := tree_fabric(keys.fabrics, keys.switches, tree.missing):
        switches = {name: each for name, each in keys.switches.items() if each.fabric == fabric}
        leaves = _leaves(switches, tree.missing)
        on_leaf = {node for leaf in leaves for node in leaf.nodes}
        tree = Tree(
            (*tree.fabrics, fabric),
            (*tree.leaves, *leaves),
            (*tree.uppers, *_uppers(switches, leaves)),
            tuple(node for node in tree.missing if node not in on_leaf),
        )
    return tree


def tree_fabric(
    fabrics: Mapping[str, Fabric], switches: Mapping[str, Switch], compute: Collection[str]
) -> str | None:
    """Choose the fabric that jobs are placed by; None if no compute node is plugged in anywhere.

    The one with most bandwidth to a node, of several that of most compute nodes, then the first.
    """
    plugged = {
        name: len(plugged_nodes(switches, name).intersection(compute))
        for name in dict.fromkeys(switch.fabric for switch in switches.values())
    }
    known = [*(name for name in fabrics if name in plugged), *(set(plugged) - set(fabrics))]
    used = [name for name in known if plugged[name]]
    # Of fabrics that are only half described, speed or rails may be missing.
    speeds = {name: (each.speed_gbit_s or 0) * (each.rails or 1) for name, each in fabrics.items()}
    return max(used, key=lambda name: (speeds.get(name, 0), plugged[name]), default=None)


def plugged_nodes(switches: Mapping[str, Switch], fabric: str) -> set[str]:
    """Every node that is plugged into some switch of a fabric."""
    return {
        node
        for switch in switches.values()
        if switch.fabric == fabric
        for link in switch.links
        # Of a site that is only half valid, a link may have no nodes.
        for node in unfold(link.nodes or "") or ()
    }


def _leaves(switches: Mapping[str, Switch], nodes: tuple[str, ...]) -> tuple[Leaf, ...]:
    """Group nodes that hang on the same switches, in the order of these."""
    hangs_on: dict[str, dict[str, None]] = {node: {} for node in nodes}
    for name, switch in switches.items():
        for link in switch.links:
            for node in unfold(link.nodes) or ():
                if node in hangs_on:
                    hangs_on[node][name] = None
    groups: dict[tuple[str, ...], list[str]] = {}
    for node, leaves in hangs_on.items():
        if leaves:
            groups.setdefault(tuple(leaves), []).append(node)
    order = {name: number for number, name in enumerate(switches)}
    found = sorted(groups.items(), key=lambda group: [order[name] for name in group[0]])
    names = _Names()
    # A group of one switch has that one's name for sure; the others take what is left.
    single = {tuple(real): names.of(real) for real, _ in found if len(real) == 1}
    return tuple(
        Leaf(single.get(real) or names.of(real), tuple(members), real) for real, members in found
    )


def _uppers(switches: Mapping[str, Switch], leaves: tuple[Leaf, ...]) -> tuple[Upper, ...]:
    """Join, level by level, what a switch above joins."""
    order = {name: number for number, name in enumerate(switches)}
    names = _Names(leaf.name for leaf in leaves)
    found: list[Upper] = []
    reached = {leaf.name: set(leaf.switches) for leaf in leaves}
    grown = True
    while grown:
        wider = {name: reals | _above(switches, reals) for name, reals in reached.items()}
        grown = wider != reached
        reached = {}
        for members in _joined(wider):
            # One alone: Slurm has nothing to choose between, and need not know of the level.
            name, reals = members[0], set().union(*(wider[member] for member in members))
            if len(members) > 1:
                count = Counter(real for member in members for real in wider[member])
                common = sorted((r for r in reals if count[r] > 1), key=order.__getitem__)
                name = names.of(tuple(common))
                found.append(Upper(name, members, tuple(common)))
            reached[name] = reals
    return tuple(found)


def _above(switches: Mapping[str, Switch], below: Iterable[str]) -> set[str]:
    return {up for name in below for up in switches[name].uplinks if up in switches}


def _joined(reached: Mapping[str, set[str]]) -> list[tuple[str, ...]]:
    """Put together the names that have a switch in common, directly or through others."""
    part_of: dict[str, list[str]] = {}
    parts: dict[int, list[str]] = {}
    for name, reals in reached.items():
        part = [name]
        parts[id(part)] = part
        for real in reals:
            other = part_of.get(real, part)
            if other is not part:
                small, part = sorted((part, other), key=len)
                part += small
                del parts[id(small)]
                for moved in small:
                    part_of.update(dict.fromkeys(reached[moved], part))
            part_of[real] = part
    order = {name: number for number, name in enumerate(reached)}
    return [tuple(sorted(part, key=order.__getitem__)) for part in parts.values()]


class _Names:
    """Names of Slurm's switches: that of a real one each, and none twice."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    def of(self, reals: tuple[str, ...]) -> str:
        """Take the first name that is free."""
        joined = "-".join(reals)
        name = next((real for real in reals if real not in self._taken), joined)
        while name in self._taken:
            name += "-x"
        self._taken.add(name)
        return name
