"""The PartitionName lines of slurm.conf. Pure; the same input gives the same bytes."""

from collections.abc import Mapping, Sequence

from hpcsite.site.model import Partition, SiteKeys
from hpcsite.slurm.cluster import Node
from hpcsite.slurm.conf import fold
from hpcsite.slurm.preemption import partition_mode
from hpcsite.slurm.text import merge


def partition_lines(keys: SiteKeys, nodes: Sequence[Node]) -> list[str]:
    """Give each partition its line."""
    members: dict[str, list[str]] = {}
    for node in nodes:
        members.setdefault(node.group, []).append(node.name)
    return [_line(keys, partition, members) for partition in keys.partitions]


def _line(keys: SiteKeys, partition: Partition, members: Mapping[str, list[str]]) -> str:
    names = [name for group in members if group in partition.node_groups for name in members[group]]
    fields = {
        "PartitionName": partition.name,
        "Nodes": fold(names) if names else "",
        "Default": "YES" if partition.default else "",
        "MaxTime": partition.max_time,
        "DefaultTime": partition.default_time or "",
        "State": partition.state,
        "MaxNodes": str(partition.max_nodes or ""),
        "QOS": partition.qos or "",
        "AllowAccounts": ",".join(partition.allow_accounts),
        "AllowQos": ",".join(partition.allow_qos),
        "AllowGroups": ",".join(partition.allow_groups),
        "PriorityTier": "" if partition.priority_tier == 1 else str(partition.priority_tier),
        "OverSubscribe": "" if partition.oversubscribe == "NO" else partition.oversubscribe,
        "PreemptMode": partition_mode(keys, partition),
    }
    said = {key: value for key, value in fields.items() if value}
    return " ".join(f"{key}={value}" for key, value in merge(said, partition.parameters).items())
