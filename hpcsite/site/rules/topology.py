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
    for name, switch in draft.keys.switches.items():
        path = ("site_switches", name)
        if switch.fabric is not None and fabrics is not None and switch.fabric not in fabrics:
            yield draft.problem(
                f"the switch {name} is of an unknown fabric {switch.fabric}",
                (*path, "fabric"),
                did_you_mean(switch.fabric, fabrics, f"describe {switch.fabric} in site_fabrics"),
                code="HPC1360",
            )
        if switch.profile is None:
            continue
        profile = catalogue.switches.get(switch.profile)
        if profile is None and not mistakes:
            yield draft.problem(
                f"the switch {name} has an unknown profile {switch.profile}",
                (*path, "profile"),
                did_you_mean(
                    switch.profile,
                    catalogue.switches,
                    f"one of {', '.join(sorted(catalogue.switches))}, or one of the site's own",
                ),
                code="HPC1361",
            )
        if profile is not None:
            yield from _fits(draft, name, switch, profile)


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
    names, switches = draft.names("switches"), draft.keys.switches
    for name, switch in switches.items():
        for other in switch.uplinks:
            path = ("site_switches", name, "uplinks", other)
            above = switches.get(other)
            if above is None:
                if names is not None and other not in names:
                    yield draft.problem(
                        f"the switch {name} has an uplink to an unknown switch {other}",
                        path,
                        did_you_mean(other, names, f"describe {other} in site_switches"),
                        code="HPC1362",
                    )
            elif not draft.invalid.isdisjoint(("site_switches", n, "role") for n in (name, other)):
                continue
            elif other == name or _RANKS[above.role] <= _RANKS[switch.role]:
                told = "itself" if other == name else f"the {above.role} {other}"
                yield draft.problem(
                    f"the uplink of the {switch.role} {name} leads to {told}",
                    path,
                    "cables go up, from leaf to spine to core: write each at its lower end",
                    code="HPC1363",
                )
            elif None not in (above.fabric, switch.fabric) and above.fabric != switch.fabric:
                yield draft.problem(
                    f"the uplink of {name} leads from the fabric {switch.fabric} to {other} of the "
                    f"fabric {above.fabric}",
                    path,
                    "correct fabric of one of them, or the name",
                    code="HPC1364",
                )


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


RULES = (
    switches_are_of_fabrics,
    uplinks_lead_up,
    nodes_are_known,
    rails_are_there,
)
