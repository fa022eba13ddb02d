"""QOS: their names, whom they preempt, and whether Slurm preempts at all."""

from collections.abc import Iterator, Mapping

from hpcsite.errors import Problem
from hpcsite.site.draft import Draft
from hpcsite.site.names import did_you_mean

_BY_QOS, _BY_TIER, _NONE = "preempt/qos", "preempt/partition_prio", "preempt/none"
# How hpcsite itself chooses, where the site does not set PreemptType.
_WORDS = {
    _BY_QOS: "jobs are preempted by QOS here",
    _BY_TIER: "jobs are preempted by partition here",
    _NONE: "nothing preempts here",
}
# GANG are time slices: jobs of one partition take turns.
_NO_PREEMPTION = (None, "OFF", "GANG")
_PARAMETERS = "site_slurm_parameters"


def qos_names_are_distinct(draft: Draft) -> Iterator[Problem]:
    """No QOS is described twice."""
    seen: set[str] = set()
    for number, qos in draft.entries("qos", "name"):
        if qos.name in seen:
            yield draft.problem(
                f"the QOS {qos.name} is described twice",
                ("site_qos", number, "name"),
                "remove one of the two",
                code="HPC1228",
            )
        seen.add(qos.name)


def preempted_qos_are_there(draft: Draft) -> Iterator[Problem]:
    """Check that a QOS preempts others that are described, and that none comes back to it."""
    known = draft.names("qos")
    if known is None:
        return
    for number, qos in draft.entries("qos"):
        path = ("site_qos", number, "preempt")
        for index, name in draft.numbered(path, qos.preempt):
            if name not in known and name != "normal":
                yield draft.problem(
                    f"the QOS {draft.called('qos', number)} preempts an unknown QOS {name}",
                    (*path, index),
                    did_you_mean(name, known, f"describe {name} in site_qos"),
                    code="HPC1229",
                )


def preemption_has_no_circle(draft: Draft) -> Iterator[Problem]:
    """Check that jobs cannot preempt each other by turns."""
    entries = {qos.name: (number, qos) for number, qos in draft.entries("qos", "name")}
    below = {name: [n for n in qos.preempt if n in entries] for name, (_, qos) in entries.items()}
    told: set[str] = set()
    for name, (number, _) in entries.items():
        circle = _circle(name, below)
        if circle and told.isdisjoint(circle):
            told.update(circle)
            yield draft.problem(
                f"QOS preempt each other: {' → '.join((*circle, name))}",
                ("site_qos", number, "preempt"),
                "keep one direction: the more important preempts the less important",
                code="HPC1230",
            )


def _circle(start: str, below: Mapping[str, list[str]]) -> list[str]:
    """Find a way from a QOS over those that it preempts back to itself."""
    came: dict[str, str] = {}
    waiting = [start]
    while waiting:
        name = waiting.pop()
        for other in below[name]:
            if other == start:
                way = [name]
                while way[-1] != start:
                    way.append(came[way[-1]])
                return way[::-1]
            if other not in came:
                came[other] = name
                waiting.append(other)
    return []


def preemption_is_in_use(draft: Draft) -> Iterator[Problem]:
    """Check that a way of preemption is that of the cluster: Slurm knows one at a time."""
    kind, key = _kind(draft)
    here = f"PreemptType is {kind}" if key else _WORDS[kind]
    qos = [
        (number, "preempt" if entry.preempt else "preempt_mode")
        for number, entry in draft.entries("qos", "preempt", "preempt_mode")
        if entry.preempt or entry.preempt_mode not in _NO_PREEMPTION
    ]
    partitions = [
        (number, "preempt_mode")
        for number, entry in draft.entries("partitions", "preempt_mode")
        if entry.preempt_mode not in _NO_PREEMPTION
    ]
    for list_, what, found, wanted in (
        ("qos", "QOS", qos, _BY_QOS),
        ("partitions", "partition", partitions, _BY_TIER),
    ):
        if found and kind != wanted:
            number, field = found[0]
            more = f" and {len(found) - 1} more" if len(found) > 1 else ""
            yield draft.problem(
                f"{field} of the {what} {draft.called(list_, number)}{more} has no effect: {here}",
                (f"site_{list_}", number, field),
                f"set PreemptType to {wanted} in {_PARAMETERS}, or remove {field}",
                code="HPC1231",
            )


def preempt_parameters_agree(draft: Draft) -> Iterator[Problem]:
    """Check that slurmctld starts with what the site says of preemption (read_config.c)."""
    name, mode = _parameter(draft, "preemptmode")
    modes = {part.strip().upper() for part in mode.split(",")}
    if not name:
        return
    kind, _ = _kind(draft)
    path = (_PARAMETERS, name)
    off = not modes - {"OFF", "GANG", ""}
    if kind == _NONE and not off:
        yield draft.problem(
            f"PreemptMode is {mode}, and nothing preempts: slurmctld does not start so",
            path,
            f"set PreemptType to {_BY_QOS} or {_BY_TIER}, or remove {name}",
            code="HPC1232",
        )
    elif kind != _NONE and off:
        yield draft.problem(
            f"PreemptMode is {mode}, and PreemptType {kind}: slurmctld does not start so",
            path,
            "set PreemptMode to REQUEUE, CANCEL or SUSPEND,GANG",
            code="HPC1232",
        )
    if "GANG" not in modes and (who := _suspends(draft, modes)):
        yield draft.problem(
            f"{who} is to suspend jobs, and PreemptMode of the cluster is without GANG, "
            "which resumes them",
            path,
            f"write {name}: {mode},GANG",
            code="HPC1232",
        )


def _suspends(draft: Draft, modes: set[str]) -> str:
    if "SUSPEND" in modes:
        return "PreemptMode"
    for key, what in (("partitions", "the partition"), ("qos", "the QOS")):
        for number, entry in draft.entries(key, "preempt_mode"):
            if "SUSPEND" in (entry.preempt_mode or ""):
                return f"{what} {draft.called(key, number)}"
    return ""


def tiers_differ(draft: Draft) -> Iterator[Problem]:
    """Check that some partition is above others where partitions preempt."""
    kind, _ = _kind(draft)
    partitions = list(draft.entries("partitions"))
    if kind != _BY_TIER or not draft.is_whole("partitions", "priority_tier"):
        return
    if len(partitions) > 1 and len({partition.priority_tier for _, partition in partitions}) == 1:
        yield draft.problem(
            "partitions are to preempt each other, and all have the same priority_tier",
            ("site_partitions",),
            "give a higher priority_tier to those whose jobs come first",
            code="HPC1233",
        )


def _kind(draft: Draft) -> tuple[str, str]:
    """Find PreemptType, and the key of the site that sets it; else as hpcsite chooses it."""
    name, kind = _parameter(draft, "preempttype")
    if name:
        return kind.lower(), name
    if any(qos.preempt for qos in draft.keys.qos):
        return _BY_QOS, ""
    modes = {partition.preempt_mode for partition in draft.keys.partitions}
    return (_BY_TIER if modes - {None, "OFF"} else _NONE), ""


def _parameter(draft: Draft, wanted: str) -> tuple[str, str]:
    """Find a parameter of slurm.conf in any case: its name as written, and its value."""
    for name, value in draft.keys.slurm_parameters.items():
        # Truth values are what YAML makes of OFF, which has a rule.
        if name.lower() == wanted and value is not None and not isinstance(value, bool):
            return name, str(value)
    return "", ""


RULES = (
    qos_names_are_distinct,
    preempted_qos_are_there,
    preemption_has_no_circle,
    preemption_is_in_use,
    preempt_parameters_agree,
    tiers_differ,
)
