"""Racks: what stands in them exists, stands once, fits, and is carried by floor and feeds."""

from collections.abc import Iterator

from hpcsite.errors import Problem
from hpcsite.site.draft import Draft
from hpcsite.site.names import did_you_mean, fold, unfold
from hpcsite.site.racks import Device, clashes, weight_kg
from hpcsite.site.rules.rack_contents import Item, Standing, items, standings
from hpcsite.site.rules.rack_power import power_is_there


def contents_exist(draft: Draft) -> Iterator[Problem]:
    """Check that every host and switch in a rack is described, and that node sets are such."""
    hosts, switches = draft.inventory.hosts, draft.names("switches")
    for item in items(draft):
        if item.entry.hosts is not None and unfold(item.entry.hosts) is None:
            yield draft.problem(
                f"{item.entry.hosts} is no set of nodes",
                (*item.path, "hosts"),
                "write it as Slurm does, e.g. gpu[001-004]",
                code="HPC1901",
            )
        elif unknown := [name for name in item.names if item.entry.hosts and name not in hosts]:
            yield draft.problem(
                f"the rack {item.rack} holds unknown hosts: {fold(unknown)}",
                (*item.path, "hosts"),
                did_you_mean(unknown[0], hosts, "correct the names, or add the hosts to hosts.yml"),
                code="HPC1902",
            )
        elif item.entry.switch and switches is not None and item.entry.switch not in switches:
            yield draft.problem(
                f"the rack {item.rack} holds an unknown switch: {item.entry.switch}",
                (*item.path, "switch"),
                did_you_mean(
                    item.entry.switch, switches, f"add {item.entry.switch} to site_switches"
                ),
                code="HPC1903",
            )


def contents_stand_once(draft: Draft) -> Iterator[Problem]:
    """Check that nothing stands in two places."""
    first: dict[tuple[bool, str], Item] = {}
    again: dict[tuple[object, object], tuple[Item, Item, list[str]]] = {}
    for item in items(draft):
        for name in item.names:
            before = first.setdefault((item.entry.hosts is None, name), item)
            if before is not item:
                found = again.setdefault((before.path, item.path), (before, item, []))
                found[2].append(name)
    for before, item, names in again.values():
        where = "this rack" if before.rack == item.rack else f"the rack {before.rack}"
        verb = "stands" if len(names) == 1 else "stand"
        yield draft.problem(
            f"{fold(names)} {verb} in {where} already, at unit {before.entry.u}",
            (*item.path, "hosts" if item.entry.hosts else "switch"),
            "keep one of the two entries",
            code="HPC1904",
        )


def profiles_are_known(draft: Draft) -> Iterator[Problem]:
    """Check that the profile of an entry is in the catalogue, and is what the nodes are."""
    for item in items(draft):
        if item.entry.profile is None:
            continue
        known = item.catalogue.nodes if item.entry.hosts else item.catalogue.switches
        kind = "node" if item.entry.hosts else "switch"
        other = {
            p for name in item.names if (p := item.own.get(name)) not in (None, item.entry.profile)
        }
        if item.entry.profile not in known:
            yield draft.problem(
                f"the catalogue has no {kind} {item.entry.profile}",
                (*item.path, "profile"),
                did_you_mean(item.entry.profile, known, "docs/catalogue.md lists the profiles"),
                code="HPC1905",
            )
        elif other:
            yield draft.problem(
                f"{item.entry.profile} is not what {item.entry.hosts or item.entry.switch} "
                f"is elsewhere: {', '.join(sorted(str(name) for name in other))}",
                (*item.path, "profile"),
                "leave `profile` out: the node group, or the switch, says it",
                code="HPC1906",
            )


def racks_hold_their_contents(draft: Draft) -> Iterator[Problem]:
    """Check room, depth, weight and power of each rack, and say what is unknown of it."""
    for rack in standings(draft):
        yield from _units_are_free(draft, rack)
        yield from _depth_is_enough(draft, rack)
        yield from _weight_is_carried(draft, rack)
        yield from power_is_there(draft, rack)
        yield from _figures_are_known(draft, rack)


def _units_are_free(draft: Draft, rack: Standing) -> Iterator[Problem]:
    said: set[tuple[int, int]] = set()
    for lower, upper in clashes(rack.devices):
        pair = (lower.item, upper.item)
        if pair not in said:
            said.add(pair)
            yield draft.problem(
                f"{upper.name} ({_units(upper)}) and {lower.name} ({_units(lower)}) stand in the "
                f"same units of the rack {rack.name}",
                (*rack.path, "contents", upper.item, "u"),
                "move one of them; hosts of one entry stack upward from its `u`",
                code="HPC1907",
            )
    for item, devices in rack.by_item(d for d in rack.devices if d.top > rack.rack.units):
        yield draft.problem(
            f"{fold(d.name for d in devices)} would reach up to unit {devices[-1].top} "
            f"of the {rack.rack.units} of the rack {rack.name}",
            (*rack.path, "contents", item, "u"),
            "move them down, or into another rack",
            code="HPC1908",
        )


def _units(device: Device) -> str:
    return f"U{device.u}" if device.top == device.u else f"U{device.u} to U{device.top}"


def _depth_is_enough(draft: Draft, rack: Standing) -> Iterator[Problem]:
    depth = rack.rack.depth_mm
    if depth is None:
        return
    for item, devices in rack.by_item(d for d in rack.devices if (d.depth_mm or 0) > depth):
        yield draft.problem(
            f"{fold(d.name for d in devices)}: {devices[0].depth_mm:g} mm deep, and the rack "
            f"{rack.name} has {depth} mm",
            (*rack.path, "contents", item),
            "choose a deeper rack: cables and power strips need room behind the device besides",
            code="HPC1909",
        )


def _weight_is_carried(draft: Draft, rack: Standing) -> Iterator[Problem]:
    limit, weight = rack.rack.max_weight_kg, weight_kg(rack.devices)
    if limit is not None and weight > limit:
        yield draft.problem(
            f"what stands in the rack {rack.name} weighs {weight:.1f} kg, and it carries {limit:g}",
            (*rack.path, "max_weight_kg"),
            "move something to another rack; the floor has a limit of its own",
            code="HPC1910",
        )


def _figures_are_known(draft: Draft, rack: Standing) -> Iterator[Problem]:
    """Say once a rack what its sums leave out."""
    known = [d for d in rack.devices if d.name not in rack.unknown]
    asked = {
        "height (taken for 1 U)": [d for d in known if d.units is None],
        "depth": [d for d in known if rack.rack.depth_mm and d.depth_mm is None],
        "weight": [d for d in known if rack.rack.max_weight_kg and d.weight_kg is None],
        "power": [d for d in known if rack.rack.feeds and d.power_w is None],
        "feeds": [d for d in known if rack.rack.feeds and not d.feeds],
    }
    parts = [f"{what} of {fold(d.name for d in left)}" for what, left in asked.items() if left]
    if parts:
        yield draft.problem(
            f"unknown: the sums of the rack {rack.name} leave out the {', the '.join(parts)}",
            rack.path,
            "name a profile that has the figures, write what is missing into one of your own in "
            "hardware/, and give each entry its `feeds`",
            code="HPC1918",
        )


def groups_are_in_racks(draft: Draft) -> Iterator[Problem]:
    """Check that hosts of one group, or switches, do not stand in racks in part only."""
    if not draft.keys.racks or not draft.is_whole("racks", "contents"):
        return
    hosts = {name for item in items(draft) if item.entry.hosts for name in item.names}
    groups = draft.inventory.groups
    above = frozenset().union(*draft.inventory.parents.values())
    named = draft.names("node_groups") or []
    said: set[str] = set()
    for group in sorted(set(groups) - above, key=lambda name: (name not in named, name)):
        without = groups[group] - hosts - said
        if without and groups[group] & hosts:
            said |= without
            yield draft.group_problem(
                f"of {group}, {fold(without)} {_stands(without)} in no rack, and the others do",
                group,
                "add them to the contents of a rack in site_racks",
                code="HPC1919",
            )
    racked = {item.entry.switch for item in items(draft) if item.entry.switch}
    switches = set(draft.names("switches") or [])
    if racked & switches and (left := switches - racked):
        yield draft.problem(
            f"{fold(left)} {_stands(left)} in no rack, and other switches do",
            ("site_switches", min(left)),
            "add them to the contents of a rack in site_racks",
            code="HPC1919",
        )


def _stands(names: set[str] | frozenset[str]) -> str:
    return "stands" if len(names) == 1 else "stand"


RULES = (
    contents_exist,
    contents_stand_once,
    profiles_are_known,
    racks_hold_their_contents,
    groups_are_in_racks,
)
