"""Partitions, node groups and free Slurm parameters."""

import re
from collections.abc import Iterator, Mapping

from hpcsite.errors import Problem
from hpcsite.site.cgroup_parameters import refused_cgroup_parameters
from hpcsite.site.draft import Draft
from hpcsite.site.model import Partition, Scalar
from hpcsite.site.names import did_you_mean, nearest
from hpcsite.site.parameters import OWNED, OWNED_OF_PARTITION, refused_parameters
from hpcsite.site.rules.groups import unknown_groups
from hpcsite.site.sources import KeyPath

# slurm.conf(5): minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes
# and days-hours:minutes:seconds.
_TIME = re.compile(
    r"(?:(?P<days>\d+)-(?P<d_hours>\d+)(?::(?P<d_minutes>\d+)(?::(?P<d_seconds>\d+))?)?"
    r"|(?:(?P<hours>\d+):(?P<h_minutes>\d+):(?P<h_seconds>\d+))"
    r"|(?P<minutes>\d+)(?::(?P<seconds>\d+))?)"
)
_UNLIMITED = ("UNLIMITED", "INFINITE")


def seconds_of(text: str) -> float | None:
    """Seconds of a time as Slurm writes it, infinite for UNLIMITED; None if it is no time."""
    if text.upper() in _UNLIMITED:
        return float("inf")
    found = _TIME.fullmatch(text)
    if not found:
        return None
    part = {name: int(value or 0) for name, value in found.groupdict().items()}
    hours = part["days"] * 24 + part["d_hours"] + part["hours"]
    minutes = hours * 60 + part["d_minutes"] + part["h_minutes"] + part["minutes"]
    return minutes * 60 + part["d_seconds"] + part["h_seconds"] + part["seconds"]


def partitions_have_node_groups(draft: Draft) -> Iterator[Problem]:
    """Every node group that a partition names is described, and named once."""
    known = draft.names("node_groups")
    if known is None:
        return
    for number, partition in draft.entries("partitions", "node_groups"):
        path: KeyPath = ("site_partitions", number, "node_groups")
        called = draft.called("partitions", number)
        seen: set[str] = set()
        for index, group in draft.numbered(path, partition.node_groups):
            if group in seen:
                yield draft.problem(
                    f"the partition {called} names the node group {group} twice",
                    (*path, index),
                    "remove one of the two",
                    code="HPC1201",
                )
            # A group that hosts.yml has under the same unknown name is reported there.
            elif group not in known and group not in unknown_groups(draft):
                yield draft.problem(
                    f"the partition {called} names an unknown node group {group}",
                    (*path, index),
                    did_you_mean(group, known, f"known: {', '.join(known) or 'none'}"),
                    code="HPC1202",
                )
            seen.add(group)


def node_groups_are_in_partitions(draft: Draft) -> Iterator[Problem]:
    """Every node group is in a partition: no job could reach its nodes otherwise."""
    known = draft.names("node_groups")
    partitions = draft.keys.partitions
    # No partition or a broken one: told by other rules, once.
    if known is None or not partitions or not draft.is_whole("partitions", "node_groups"):
        return
    reached = {group for partition in partitions for group in partition.node_groups}
    meant = {nearest(group, known) for group in reached - set(known)}
    if None in meant:
        return
    for name in known:
        if name not in reached | meant and draft.inventory.groups.get(name):
            yield draft.problem(
                f"the node group {name} is in no partition, so no job could run on its nodes",
                ("site_node_groups", name),
                f"add {name} to the node_groups of a partition in site_partitions; one with "
                "`state: DOWN` keeps nodes that are not for jobs yet",
                code="HPC1203",
            )


def partition_names_are_distinct(draft: Draft) -> Iterator[Problem]:
    """Names are distinct in any case, and none is Slurm's own."""
    seen: dict[str, str] = {}
    for number, partition in draft.entries("partitions", "name"):
        path: KeyPath = ("site_partitions", number, "name")
        if partition.name.upper() == "DEFAULT":
            yield draft.problem(
                "no partition can be called DEFAULT",
                path,
                "Slurm uses this name for default values; choose another",
                code="HPC1204",
            )
        elif seen.setdefault(partition.name.lower(), partition.name) != partition.name or any(
            other.name == partition.name
            for before, other in draft.entries("partitions", "name")
            if before < number
        ):
            yield draft.problem(
                f"there is a partition {seen[partition.name.lower()]} already",
                path,
                "give each partition its own name",
                code="HPC1205",
            )


def one_partition_is_default(draft: Draft) -> Iterator[Problem]:
    """Jobs that name no partition have exactly one to go to; there is one if there are nodes."""
    partitions = list(draft.entries("partitions"))
    defaults = [number for number, partition in partitions if partition.default]
    if draft.is_whole("partitions", "default") and not defaults:
        if partitions:
            yield draft.problem(
                "no partition is the default one",
                ("site_partitions",),
                "set `default: true` on the one for jobs that name none",
                code="HPC1206",
            )
        elif draft.inventory.groups.get("slurm_compute"):
            yield draft.problem(
                "the site has compute nodes but no partition",
                ("site_partitions",),
                "add site_partitions with at least one; without any, no job can run",
                code="HPC1207",
            )
    for number in defaults[1:]:
        first, other = (draft.called("partitions", n) for n in (defaults[0], number))
        yield draft.problem(
            f"the partitions {first} and {other} are both the default one",
            ("site_partitions", number, "default"),
            "set `default: true` on one partition only",
            code="HPC1208",
        )


def times_are_valid(draft: Draft) -> Iterator[Problem]:
    """Check that times are in one of Slurm's forms, and no job's default is beyond the limit."""
    for number, partition in draft.entries("partitions"):
        yield from _times(draft, number, partition)


def _times(draft: Draft, number: int, partition: Partition) -> Iterator[Problem]:
    seconds = {}
    for name in ("max_time", "default_time"):
        text = getattr(partition, name)
        seconds[name] = None if text is None else seconds_of(text)
        if text is not None and seconds[name] is None:
            yield draft.problem(
                f"{text} is no time limit",
                ("site_partitions", number, name),
                'as Slurm writes it: minutes ("30"), hours:minutes:seconds ("12:00:00"), '
                "days-hours:minutes:seconds (1-00:00:00), or UNLIMITED",
                code="HPC1209",
            )
    default, limit = seconds["default_time"], seconds["max_time"]
    if default is not None and limit is not None and default > limit:
        yield draft.problem(
            f"the default time {partition.default_time} of the partition "
            f"{draft.called('partitions', number)} "
            f"is above its limit {partition.max_time}",
            ("site_partitions", number, "default_time"),
            "lower default_time or raise max_time",
            code="HPC1210",
        )


def parameters_are_free(draft: Draft) -> Iterator[Problem]:
    """Free parameters do not contradict what hpcsite writes, and stay on their line."""
    yield from _parameters(draft, ("site_slurm_parameters",), draft.keys.slurm_parameters, OWNED)
    for number, partition in draft.entries("partitions"):
        path: KeyPath = ("site_partitions", number, "parameters")
        yield from _parameters(draft, path, partition.parameters, OWNED_OF_PARTITION)


def cgroup_parameters_can_be(draft: Draft) -> Iterator[Problem]:
    """Hold that slurmd knows what goes into cgroup.conf, and that cgroups are used at all."""
    key = "site_slurm_cgroup_parameters"
    parameters = draft.keys.slurm_cgroup_parameters
    for name, refusal in refused_cgroup_parameters(parameters).items():
        yield draft.problem(refusal.why, (key, name), refusal.hint, code=refusal.code)
    if parameters and draft.keys.slurm_process_tracking == "linuxproc":
        yield draft.problem(
            "site_slurm_process_tracking is linuxproc, so Slurm reads no key of cgroup.conf",
            (key,),
            f"remove {key}, or set site_slurm_process_tracking to cgroup or auto",
            code="HPC1218",
        )


def _parameters(
    draft: Draft, path: KeyPath, parameters: Mapping[str, Scalar | None], owned: Mapping[str, str]
) -> Iterator[Problem]:
    for name, refusal in refused_parameters(parameters, owned).items():
        yield draft.problem(refusal.why, (*path, name), refusal.hint, code=refusal.code)


def virtual_groups_declare_hardware(draft: Draft) -> Iterator[Problem]:
    """Slurm can schedule by the declaration only where there is one."""
    for name, group in draft.keys.node_groups.items():
        hardware = ("site_node_groups", name, "hardware")
        if group.virtual and group.hardware is None and hardware not in draft.invalid:
            yield draft.problem(
                f"the node group {name} is virtual, but has no hardware",
                ("site_node_groups", name, "virtual"),
                "declare `hardware:`, or remove `virtual` to use what each node has",
                code="HPC1701",
            )


RULES = (
    partitions_have_node_groups,
    node_groups_are_in_partitions,
    partition_names_are_distinct,
    one_partition_is_default,
    times_are_valid,
    parameters_are_free,
    cgroup_parameters_can_be,
    virtual_groups_declare_hardware,
)
