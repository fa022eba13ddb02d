"""Who preempts whom, as slurm.conf says it. Pure.

Slurm knows one rule at a time: by the QOS of jobs, or by the tier of partitions. Both need a mode
other than OFF for the whole cluster, even where each QOS or partition has its own, and with SUSPEND
also GANG there (slurm.conf(5), PreemptMode).
"""

from hpcsite.site.model import Partition, SiteKeys

# Of all modes the one that loses least: a job that can be queued again is, others are cancelled.
CLUSTER_MODE = "REQUEUE"


def preemption(keys: SiteKeys) -> dict[str, str]:
    """PreemptType and PreemptMode of the cluster; empty where nothing preempts."""
    kind = preempt_type(keys)
    if not kind:
        return {}
    modes = {qos.preempt_mode for qos in keys.qos} | {p.preempt_mode for p in keys.partitions}
    gang = any(mode and ("SUSPEND" in mode or "GANG" in mode) for mode in modes)
    return {"PreemptType": kind, "PreemptMode": f"{CLUSTER_MODE},GANG" if gang else CLUSTER_MODE}


def preempt_type(keys: SiteKeys) -> str:
    """Choose the plugin: QOS before partitions, since a QOS names whom it preempts."""
    if any(qos.preempt for qos in keys.qos):
        return "preempt/qos"
    if any(partition.preempt_mode not in (None, "OFF") for partition in keys.partitions):
        return "preempt/partition_prio"
    return ""


def partition_mode(keys: SiteKeys, partition: Partition) -> str:
    """PreemptMode of a partition; empty where its line need not say it.

    A partition without a mode is not preempted: the mode of the cluster, which hpcsite has to
    write, would open it. Where the site itself sets that one, it holds.
    """
    if partition.preempt_mode:
        return partition.preempt_mode
    by_site = "preemptmode" in (key.lower() for key in keys.slurm_parameters)
    by_tier = preempt_type(keys) == "preempt/partition_prio"
    return "OFF" if by_tier and not by_site else ""
