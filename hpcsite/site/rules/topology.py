"""Switches: what they are, where their cables lead, and what is plugged in."""

from collections.abc import Iterator
from dataclasses import dataclass

from hpcsite.errors import Problem
from hpcsite.site.catalogue import SwitchProfile, read_catalogue
from hpcsite.site.draft import Draft
from hpcsite.site.model import Switch, SwitchLink
from hpcsite.site.names import did_you_mean, fold, unfold
from hpcsite.site.sources import KeyPath

_RANKS = {"leaf": 0, "spine": 1, "core": 2}


@dataclass(frozen=True)
class Plug:
    """A link of a switch. `nodes` are those of the inventory, `unknown` the others."""

    switch: str
    fabric: str
    path: KeyPath
    link: SwitchLink
    nodes: tuple[str, ...]
    unknown: tuple[str, ...]


def plugs(draft: Draft) -> list[Plug]:
    """List the links of all switches whose fabric is known."""
    found = []
    for name, switch in draft.keys.switches.items():
        below: KeyPath = ("site_switches", name, "links")
        for number, link in draft.numbered(below, switch.links):
            path: KeyPath = (*below, number)
            # Of a rail that is not valid, nothing is known: it is not one that is left out.
            if None in (switch.fabric, link.nodes) or (*path, "rail") in draft.invalid:
                continue
            names = unfold(link.nodes) or ()
            nodes = tuple(node for node in names if node in draft.inventory.hosts)
            unknown = tuple(node for node in names if node not in draft.inventory.hosts)
            found.append(Plug(name, switch.fabric, path, link, nodes, unknown))
    return found


def rails_of(draft: Draft, found: list[Plug]) -> dict[tuple[str, str], set[int]]:
    """Rails of a fabric and node that links name."""
    rails: dict[tuple[str, str], set[int]] = {}
    for plug in found:
        for node in plug.nodes if plug.link.rail is not None else ():
            rails.setdefault((plug.fabric, node), set()).add(plug.link.rail or 0)
    return rails


def rail_count(draft: Draft, fabric: str) -> int | None:
    """How many rails a fabric has; None if that is not known."""
    known = draft.keys.fabrics.get(fabric)
    if known is None or ("site_fabrics", fabric, "rails") in draft.invalid:
        return None
    return known.rails


def switches_are_of_fabrics(draft: Draft) -> Iterator[Problem]:
    """Check that fabric and profile of each switch exist, and go together."""
    catalogue, mistakes = read_catalogue(draft.path)
    fabrics = draft.names("fabrics")
    unknown: dict[tuple[str, str, str], list[str]] = {}
    for name, switch in draft.keys.switches.items():
        if switch.fabric is not None and fabrics is not None and switch.fabric not in fabrics:
            unknown.setdefault(("fabric", switch.fabric, "HPC1360"), []).append(name)
        profile = catalogue.switches.get(switch.profile or "")
        if profile is not None:
            yield from _fits(draft, name, switch, profile)
        elif switch.profile is not None and not mistakes:
            unknown.setdefault(("profile", switch.profile, "HPC1361"), []).append(name)
    for (key, value, code), names in unknown.items():
        hint = (
            did_you_mean(value, fabrics or (), f"describe {value} in site_fabrics")
            if key == "fabric"
            else did_you_mean(
                value,
                catalogue.switches,
                f"one of {', '.join(sorted(catalogue.switches))}, or one of the site's own",
            )
        )
        yield draft.problem(
            f"{key} {value} of {_switches(names)} is unknown",
            ("site_switches", names[0], key),
            hint,
            code=code,
        )


def _fits(draft: Draft, name: str, switch: Switch, profile: SwitchProfile) -> Iterator[Problem]:
    fabric = draft.keys.fabrics.get(switch.fabric)
    path = ("site_switches", name, "profile")
    if fabric is None or fabric.kind is None:
        return
    if (fabric.kind == "infiniband") != (profile.fabric == "infiniband"):
        yield draft.problem(
            f"the switch {name} ({profile.title}) is {profile.fabric}, and its fabric "
            f"{switch.fabric} is {fabric.kind}",
            path,
            "correct profile or fabric of the switch",
            code="HPC1372",
        )
        return
    speed = profile.speed_gbit_s.value if profile.speed_gbit_s else None
    if speed is not None and fabric.speed_gbit_s is not None and speed < fabric.speed_gbit_s:
        yield draft.problem(
            f"the switch {name} ({profile.title}) has ports of {speed:g} Gb/s, and its fabric "
            f"{switch.fabric} is one of {fabric.speed_gbit_s} Gb/s",
            path,
            "correct the profile, or speed_gbit_s of the fabric",
            code="HPC1373",
        )


def uplinks_lead_up(draft: Draft) -> Iterator[Problem]:
    """Check that each uplink leads to a switch above, of the same fabric: so there is no circle."""
    names = draft.names("switches")
    wrong: dict[tuple[str, str, str], list[str]] = {}
    for name, switch in draft.keys.switches.items():
        for other in switch.uplinks:
            if found := _wrong_uplink(draft, (name, switch), other, names):
                wrong.setdefault((*found, other), []).append(name)
    for (code, told, other), below in wrong.items():
        hint = {
            "HPC1362": did_you_mean(other, names or (), f"describe {other} in site_switches"),
            "HPC1363": "cables go up, from leaf to spine to core: write each at its lower end",
            "HPC1364": "correct fabric of one of them, or the name",
        }[code]
        yield draft.problem(
            f"an uplink of {_switches(below)} leads to {told}",
            ("site_switches", below[0], "uplinks", other),
            hint,
            code=code,
        )


def _wrong_uplink(
    draft: Draft, below: tuple[str, Switch], other: str, names: list[str] | None
) -> tuple[str, str] | None:
    """Say what is wrong with an uplink: the code, and where it leads."""
    name, switch = below
    above = draft.keys.switches.get(other)
    if above is None:
        known = names is None or other in names
        return None if known else ("HPC1362", f"an unknown switch {other}")
    if other == name:
        return "HPC1363", f"{name} itself"
    sure = draft.invalid.isdisjoint(("site_switches", each, "role") for each in (name, other))
    if sure and _RANKS[above.role] <= _RANKS[switch.role]:
        return "HPC1363", f"the {above.role} {other}, which is not above a {switch.role}"
    if None not in (above.fabric, switch.fabric) and above.fabric != switch.fabric:
        return "HPC1364", f"{other} of another fabric, {above.fabric}"
    return None


def _switches(names: list[str]) -> str:
    return f"the switch{'es' if len(names) > 1 else ''} {fold(names)}"


def nodes_are_known(draft: Draft) -> Iterator[Problem]:
    """Check that what is plugged in is in the inventory."""
    for plug in plugs(draft):
        path = (*plug.path, "nodes")
        if unfold(plug.link.nodes) is None:
            yield draft.problem(
                f"{plug.link.nodes} is no set of nodes",
                path,
                "write it as Slurm does, e.g. gpu[001-016]",
                code="HPC1366",
            )
        elif plug.unknown:
            yield draft.problem(
                f"the switch {plug.switch} has unknown nodes: {fold(plug.unknown)}",
                path,
                did_you_mean(
                    plug.unknown[0],
                    draft.inventory.hosts,
                    "correct the names, or add the hosts to hosts.yml",
                ),
                code="HPC1366",
            )


def rails_are_there(draft: Draft) -> Iterator[Problem]:
    """Check that the fabric has the rails of the links, and each node is on each of them once."""
    found = plugs(draft)
    named = rails_of(draft, found)
    first: dict[tuple[str, str, int | None], Plug] = {}
    again: dict[tuple[KeyPath, str, int | None], list[str]] = {}
    for plug in found:
        rails = rail_count(draft, plug.fabric)
        if rails is not None and plug.link.rail is not None and plug.link.rail >= rails:
            yield draft.problem(
                f"the switch {plug.switch} is on rail {plug.link.rail}, and the fabric "
                f"{plug.fabric} has {rails}",
                (*plug.path, "rail"),
                f"rails are counted from 0: at most {rails - 1}, or correct rails of the fabric",
                code="HPC1368",
            )
            continue
        for node in plug.nodes:
            rail = plug.link.rail
            before = first.setdefault((plug.fabric, node, rail), plug)
            taken = len(named.get((plug.fabric, node), ())) if rail is None else 0
            if before is not plug:
                again.setdefault((plug.path, before.switch, rail), []).append(node)
            elif rails is not None and taken >= rails:
                again.setdefault((plug.path, "others", rail), []).append(node)
    for (path, other, rail), nodes in again.items():
        where = "on all rails" if rail is None else f"on rail {rail}"
        yield draft.problem(
            f"{fold(nodes)}: plugged in {where} already, into {other}",
            (*path, "nodes"),
            "correct the nodes of one of the two links, or give each its rail",
            code="HPC1367",
        )


def rails_are_complete(draft: Draft) -> Iterator[Problem]:
    """Doubt compute nodes that are plugged into some rails of a fabric and not into others."""
    compute = draft.inventory.groups.get("slurm_compute", frozenset())
    found = plugs(draft)
    # A link without a rail stands for all that are left.
    whole = {(p.fabric, node) for p in found if p.link.rail is None for node in p.nodes}
    lacking: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for (fabric, node), rails in rails_of(draft, found).items():
        missing = tuple(sorted(set(range(rail_count(draft, fabric) or 0)) - rails))
        if missing and node in compute and (fabric, node) not in whole:
            lacking.setdefault((fabric, missing), []).append(node)
    for (fabric, missing), nodes in lacking.items():
        yield draft.problem(
            f"{fold(nodes)} of the fabric {fabric}: in no switch on rail "
            f"{fold(str(rail) for rail in missing)}",
            ("site_switches",),
            "add the nodes to links of the switches of these rails",
            code="HPC1374",
        )


RULES = (
    switches_are_of_fabrics,
    uplinks_lead_up,
    nodes_are_known,
    rails_are_there,
    rails_are_complete,
)
