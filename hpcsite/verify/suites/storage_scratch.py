"""Check `storage/scratch`: the file system on each node's own disk, by fio, held against peers'.

Where the site declares scratch (`site_scratch`), that is what is looked at, and it must be mounted
as declared. Elsewhere it is /var/tmp, which is to be on a disk (file-hierarchy(7)): every node has
one, unless it runs without disks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hpcsite.site.names import fold
from hpcsite.verify.context import Context
from hpcsite.verify.findings import Finding, NotMeasuredError, Tally
from hpcsite.verify.parsers.fio import FioRun
from hpcsite.verify.results import Culprit, Measurement, Property, Status
from hpcsite.verify.session import Crew, Said, Session, fault, lead, step, step_id
from hpcsite.verify.suites import needs
from hpcsite.verify.suites.storage_disks import Disk, Place, judge_place, places, properties_of
from hpcsite.verify.suites.storage_fio import MIB, NO_REFERENCE, Load, fio_runs, load_of
from hpcsite.verify.suites.storage_patterns import command, measurement, reached, within_s
from hpcsite.verify.suites.storage_peers import FLOOR, LAB_FLOOR, faults, slow_nodes, too_few

# What NVMe needs to be busy.
_DEPTH = 32
_MEMORY_MIB = 384
_STEP_S, _LASTS_S = 15, 60
_LEAST_MIB = 16
REMEDY = (
    "look at the disk: smartctl -a or nvme smart-log, the kernel's log, what else writes to it, "
    "and whether discard (fstrim.timer) runs"
)


def find_scratch(context: Context) -> Finding:
    """Look at each node's own disk, measure it, and hold it against those of its peers."""
    needs.require_nodes(context)
    where, tally = places(context), Tally(unknown=list(context.cluster.blocked))
    crew = Crew(context.cluster.targets)
    steps = [
        step(
            "mounts",
            place.path,
            f"look {number}",
            place.nodes,
            user=context.core.user,
            probe=f".{context.core.job_name}",
            timeout_s=_STEP_S,
        )
        for number, place in enumerate(where)
    ]
    session = lead(context, crew, steps, name="scratch", lasts_s=_LASTS_S)
    tally.unknown += session.absent.values()
    disks: list[dict[str, Disk]] = []
    without: list[str] = []
    for number, place in enumerate(where):
        said = session.of(step_id(place.path, f"look {number}"))
        asked = [node for node in place.nodes if node not in session.absent]
        disks.append(judge_place(place, asked, said, context.core.user, tally, without))
    properties = [one for at, of in zip(where, disks, strict=True) for one in properties_of(at, of)]
    if not any(disks):
        if without and not tally.wrong and not tally.unknown:
            return Finding(Status.SKIP, f"no node has a disk of its own: {without[0]}", crew.hosts)
        return tally.finding(crew.hosts, reason="; ".join(without), properties=properties)
    return _measure(context, where, disks, tally, properties, without)


def load_for(context: Context, disks: Mapping[str, Disk]) -> Load:
    """Take a smaller file where it would fill a tenth of what is free on some node."""
    load = load_of(context)
    if context.site.keys.lab:
        # One machine after the other is measured there.
        load = replace(load, seconds=1)
    most = min(disk.free for disk in disks.values()) // (10 * MIB)
    return replace(load, file_mib=max(min(load.file_mib, most), _LEAST_MIB))


def _groups(
    context: Context, number: int, disks: Mapping[str, Disk]
) -> list[tuple[str, list[str]]]:
    """Name what runs at a time: all nodes, but in a lab one, since its machines share a disk."""
    if context.site.keys.lab:
        return [(f"run {number} {node}", [node]) for node in disks]
    return [(f"run {number}", list(disks))] if disks else []


def _measure(
    context: Context,
    where: Sequence[Place],
    disks: Sequence[Mapping[str, Disk]],
    tally: Tally,
    properties: Sequence[Property],
    without: Sequence[str],
) -> Finding:
    steps, loads = [], {}
    for number, (place, of) in enumerate(zip(where, disks, strict=True)):
        if not of:
            continue
        loads[number] = load_for(context, of)
        steps += run_steps(place, number, of, _groups(context, number, of), loads[number], context)
    nodes = {node for of in disks for node in of}
    crew = Crew(tuple(target for target in context.cluster.targets if target.name in nodes))
    lasts = sum(float(one["timeout_s"]) for one in steps)
    session = lead(context, crew, steps, name="scratch-fio", lasts_s=lasts, memory_mib=_MEMORY_MIB)
    tally.unknown += session.absent.values()
    measured: list[Measurement] = []
    culprits: list[Culprit] = []
    notes = list(without)
    for number, load in loads.items():
        place, of = where[number], disks[number]
        runs = _runs(context, place, number, of, session, tally)
        values = reached(place.path, runs, tally.wrong, tally.unknown)
        for name, by_node in values.items():
            measured += [
                measurement(name, value, load, _DEPTH, path=place.path, nodes=node)
                for node, value in by_node.items()
            ]
        found, alone = _against_peers(context, place, values)
        culprits += found
        notes += alone
    if not measured and not tally.wrong and not tally.unknown:
        raise NotMeasuredError("fio measured nothing on any node")
    tally.wrong += faults(tuple(culprits))
    return tally.finding(
        sorted(nodes),
        reason="; ".join(dict.fromkeys([NO_REFERENCE, *notes])),
        measurements=measured,
        properties=properties,
        culprits=culprits,
        remedy=REMEDY if culprits else "",
    )


def run_steps(
    place: Place,
    number: int,
    disks: Mapping[str, Disk],
    groups: Sequence[tuple[str, list[str]]],
    load: Load,
    context: Context,
) -> list[Said]:
    """Make a folder on each node, and run fio in it; nodes may have their folders elsewhere."""
    by_base: dict[str, list[str]] = {}
    for node, disk in disks.items():
        by_base.setdefault(disk.base, []).append(node)
    name = f".{context.core.job_name}-scratch"
    steps = [
        step("make", place.path, f"make {number}", nodes, folder=f"{base}/{name}")
        for base, nodes in by_base.items()
    ]
    for key, group in groups:
        for base, nodes in by_base.items():
            ring = [node for node in group if node in nodes]
            if ring:
                more = {"folder": f"{base}/{name}", "timeout_s": within_s(load)}
                argv = command(load, _DEPTH)
                steps.append(step("run", place.path, key, ring, argv=argv, **more))
    return steps


def _runs(
    context: Context,
    place: Place,
    number: int,
    disks: Mapping[str, Disk],
    session: Session,
    tally: Tally,
) -> dict[str, FioRun]:
    """Read what fio said on each node that could begin."""
    runs = dict[str, FioRun]()
    for key, group in _groups(context, number, disks):
        present = [node for node in group if node not in session.absent]
        made = _made(place, number, session, present, tally)
        runs |= fio_runs(context, place.path, session, key, made, tally)
    return runs


def _made(
    place: Place, number: int, session: Session, nodes: Sequence[str], tally: Tally
) -> list[str]:
    """Return the nodes that have their folder; why others do not goes into the tally."""
    said, made = session.of(step_id(place.path, f"make {number}")), []
    for node in nodes:
        answer = said.get(node)
        if answer is None or "silent" in answer:
            tally.unknown.append(f"{node}: no folder was made on {place.path}")
        elif why := fault(answer):
            tally.wrong.append(f"{node}: cannot write on {place.path}: {why}")
        else:
            made.append(node)
    return made


def _against_peers(
    context: Context, place: Place, values: Mapping[str, Mapping[str, float]]
) -> tuple[list[Culprit], list[str]]:
    """Name slow nodes, each among those of its node group, and say which have no peers."""
    floor = LAB_FLOOR if context.site.keys.lab else FLOOR
    group_of = {target.name: target.group for target in context.cluster.targets}
    measured = {node for of in values.values() for node in of}
    found: list[Culprit] = []
    notes = []
    for group in dict.fromkeys(group_of[node] for node in group_of if node in measured):
        own = {
            name: {node: value for node, value in of.items() if group_of[node] == group}
            for name, of in values.items()
        }
        found += slow_nodes(own, place.path, floor=floor, sure=True)
        if too_few(own):
            few = fold(node for node in measured if group_of[node] == group)
            notes.append(f"{few} has no peer to be held against")
    return found, notes
