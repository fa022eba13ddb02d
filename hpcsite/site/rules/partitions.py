"""Partitions: their nodes, their limits, and whose jobs they take."""

from collections.abc import Iterable, Iterator

from hpcsite.errors import Problem
from hpcsite.site.draft import Draft
from hpcsite.site.model import Partition
from hpcsite.site.names import did_you_mean, nearest
from hpcsite.site.rules.groups import unknown_groups
from hpcsite.site.rules.slurm import seconds_of, time_problem
from hpcsite.site.sources import KeyPath

# There without anybody's doing: slurmdbd makes them (sacctmgr(1)).
DEFAULT_QOS = "normal"
ROOT_ACCOUNT = "root"


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
        elif (first := seen.get(partition.name.lower())) is not None:
            yield draft.problem(
                f"there is a partition {first} already",
                path,
                "give each partition its own name",
                code="HPC1205",
            )
        seen.setdefault(partition.name.lower(), partition.name)


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
            yield time_problem(draft, text, ("site_partitions", number, name))
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


def partitions_name_what_is_there(draft: Draft) -> Iterator[Problem]:
    """Check that QOS, accounts and Unix groups that partitions name are described."""
    qos, accounts, groups = (draft.names(key) for key in ("qos", "accounts", "groups"))
    for number, partition in draft.entries("partitions"):
        if qos is not None and partition.qos is not None:
            path: KeyPath = ("site_partitions", number, "qos")
            yield from _unknown(draft, number, "QOS", [(path, partition.qos)], qos)
        if qos is not None:
            named = _named(draft, number, "allow_qos", partition.allow_qos)
            yield from _unknown(draft, number, "QOS", named, qos)
        if accounts is not None:
            named = _named(draft, number, "allow_accounts", partition.allow_accounts)
            yield from _unknown(draft, number, "account", named, accounts)
        if groups is not None:
            for where, group in _named(draft, number, "allow_groups", partition.allow_groups):
                if group not in groups:
                    yield draft.problem(
                        f"the partition {draft.called('partitions', number)} is for the group "
                        f"{group}, which site_groups does not describe",
                        where,
                        did_you_mean(
                            group, groups, "acknowledge it if a directory service has the group"
                        ),
                        code="HPC1226",
                    )


def _named(
    draft: Draft, number: int, field: str, names: tuple[str, ...]
) -> Iterator[tuple[KeyPath, str]]:
    path: KeyPath = ("site_partitions", number, field)
    for index, name in draft.numbered(path, names):
        yield (*path, index), name


def _unknown(
    draft: Draft, number: int, what: str, named: Iterable[tuple[KeyPath, str]], known: list[str]
) -> Iterator[Problem]:
    key, built_in, code = (
        ("site_qos", DEFAULT_QOS, "HPC1224")
        if what == "QOS"
        else ("site_accounts", ROOT_ACCOUNT, "HPC1225")
    )
    for path, name in named:
        if name not in known and name != built_in:
            yield draft.problem(
                f"the partition {draft.called('partitions', number)} names an unknown {what} "
                f"{name}",
                path,
                did_you_mean(name, known, f"describe it in {key}"),
                code=code,
            )


RULES = (
    partitions_have_node_groups,
    node_groups_are_in_partitions,
    partition_names_are_distinct,
    one_partition_is_default,
    times_are_valid,
    partitions_name_what_is_there,
)
