"""Cables of switches as a whole: ports for all of them, bandwidth, and Slurm's tree."""

from collections.abc import Iterator
from dataclasses import dataclass

from hpcsite.errors import Problem
from hpcsite.site.catalogue import SwitchProfile, read_catalogue
from hpcsite.site.draft import Draft
from hpcsite.site.model import Fabric, Switch
from hpcsite.site.names import fold
from hpcsite.site.rules.topology import plugs, rail_count, rails_of
from hpcsite.site.topology import slurm_tree

# A switch whose main ports are slower has faster ones besides, for its uplinks; the catalogue does
# not count them.
_ACCESS_GBIT_S = 100


@dataclass
class Cables:
    """Cables of a switch: to nodes' ports, to switches above, and from those below."""

    nodes: int = 0
    up: int = 0
    below: int = 0

    @property
    def between(self) -> int:
        """Cables to other switches."""
        return self.up + self.below


def ports_suffice(draft: Draft) -> Iterator[Problem]:
    """Check that no switch has more cables than ports."""
    for name, cables, _, fabric, profile in _measured(draft):
        speed, ports = _speed(profile), profile.ports.value if profile.ports else None
        if ports is None:
            continue
        split = max(1, int(speed // fabric.speed_gbit_s))
        used = cables.nodes if speed < _ACCESS_GBIT_S else cables.nodes + cables.between
        if used > ports * split:
            parts = f", {split} in each by splitters" if split > 1 else ""
            yield draft.problem(
                f"the switch {name} has {used} cables ({cables.nodes} to nodes, {cables.between} "
                f"to switches), and {profile.title} has {ports} ports{parts}",
                ("site_switches", name),
                "correct links and uplinks, or add a switch",
                code="HPC1365",
            )


def leaves_have_bandwidth(draft: Draft) -> Iterator[Problem]:
    """Doubt a leaf whose cables up carry less than its nodes' ports."""
    for name, cables, switch, fabric, profile in _measured(draft):
        speed = _speed(profile)
        if switch.role != "leaf" or not cables.up or speed < _ACCESS_GBIT_S:
            continue
        down, up = cables.nodes * fabric.speed_gbit_s, cables.up * speed
        if down > up:
            yield draft.problem(
                f"the leaf {name} has {down / 1000:g} Tb/s to nodes, and at most "
                f"{up / 1000:g} Tb/s up: {down / up:.2f} to 1",
                ("site_switches", name, "uplinks"),
                "add cables up, or say in site_acknowledged why less is enough",
                code="HPC1371",
            )


def tree_has_all_nodes(draft: Draft) -> Iterator[Problem]:
    """Check that Slurm's tree has every compute node, and doubt one in several parts."""
    if draft.keys.topology != "tree" or not _is_sure(draft):
        return
    compute = draft.inventory.groups.get("slurm_compute", frozenset())
    tree = slurm_tree(draft.keys, (host for host in draft.inventory.hosts if host in compute))
    if tree.missing:
        key = "site_slurm_topology" if draft.keys.slurm_topology else "site_switches"
        yield draft.problem(
            f"compute nodes that are plugged into no switch: {fold(tree.missing)}",
            (key,),
            "add them to links of their switches, or set `site_slurm_topology: none`",
            code="HPC1369",
        )
    fabrics = {leaf.name: draft.keys.switches[leaf.switches[0]].fabric for leaf in tree.leaves}
    for upper in tree.uppers:
        fabrics[upper.name] = fabrics[upper.switches[0]]
    parts: dict[str, list[str]] = {}
    for root in tree.roots:
        parts.setdefault(fabrics[root], []).append(root)
    for fabric, roots in parts.items():
        if len(roots) > 1:
            yield draft.problem(
                f"nothing joins the switches {fold(roots)} of the fabric {fabric}",
                ("site_switches", roots[1]),
                "describe their uplinks and the switches above, or say in site_acknowledged that "
                "the parts are meant",
                code="HPC1370",
            )


def _is_sure(draft: Draft) -> bool:
    """Whether all links are known; a mistake in one is said of that one."""
    whole = draft.is_whole("switches", "fabric", "links", "uplinks", "role")
    return (
        whole
        and draft.is_whole("slurm_topology")
        and draft.is_whole("fabrics")
        and not any(plug.unknown or not plug.nodes for plug in plugs(draft))
    )


def _measured(draft: Draft) -> Iterator[tuple[str, Cables, Switch, Fabric, SwitchProfile]]:
    """Yield the switches of which speed and profile are known."""
    profiles = read_catalogue(draft.path)[0].switches
    for name, cables in _cables(draft).items():
        switch = draft.keys.switches[name]
        profile, fabric = profiles.get(switch.profile or ""), draft.keys.fabrics.get(switch.fabric)
        if profile is None or profile.speed_gbit_s is None or fabric is None:
            continue
        if fabric.speed_gbit_s is not None:
            yield name, cables, switch, fabric, profile


def _speed(profile: SwitchProfile) -> float:
    return profile.speed_gbit_s.value if profile.speed_gbit_s else 0


def _cables(draft: Draft) -> dict[str, Cables]:
    found = {name: Cables() for name in draft.keys.switches}
    all_plugs = plugs(draft)
    named = rails_of(draft, all_plugs)
    for plug in all_plugs:
        rails = rail_count(draft, plug.fabric) or 1
        for node in plug.nodes:
            left = rails - len(named.get((plug.fabric, node), ()))
            found[plug.switch].nodes += max(1, left) if plug.link.rail is None else 1
        # Of nodes that are unknown, the cables are there all the same.
        found[plug.switch].nodes += len(plug.unknown)
    for name, switch in draft.keys.switches.items():
        for above, count in switch.uplinks.items():
            found[name].up += count
            if above in found:
                found[above].below += count
    return found


RULES = (ports_suffice, leaves_have_bandwidth, tree_has_all_nodes)
