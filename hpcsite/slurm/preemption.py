"""Who preempts whom, as slurm.conf says it. Pure.

Slurm knows one rule at a time: by the QOS of jobs, or by the tier of partitions. Both need a mode
other than OFF for the whole cluster, even where each QOS or partition has its own, and with SUSPEND
also GANG there (slurm.conf(5), PreemptMode).
"""

from hpcsite.site.model import Partition, Scalar, SiteKeys

BY_QOS, BY_TIER = "preempt/qos", "preempt/partition_prio"
# Of all modes the one that loses least: a job that can be queued again is, others are cancelled.
CLUSTER_MODE = "REQUEUE"
# GANG alone are time slices: jobs of one partition take turns, and none is preempted.
_NO_PREEMPTION = (None, "OFF", "GANG")


def preemption(keys: SiteKeys) -> dict[str, str]:
    """PreemptType and PreemptMode of the cluster; empty where nothing preempts or takes turns."""
    kind = preempt_type(keys)
    modes = {qos.preempt_mode for qos in keys.qos} | {p.preempt_mode for p in keys.partitions}
    gang = any("GANG" in mode or "SUSPEND" in mode for mode in modes if mode)
    if not kind:
        turns = any(partition.preempt_mode == "GANG" for partition in keys.partitions)
        return {"PreemptMode": "GANG"} if turns else {}
    return {"PreemptType": kind, "PreemptMode": f"{CLUSTER_MODE},GANG" if gang else CLUSTER_MODE}


def preempt_type(keys: SiteKeys) -> str:
    """Choose the plugin: the site's word, else QOS before partitions; empty for none.

    A QOS names whom it preempts, which says more than a tier.
    """
    if "preempttype" in (own := _lowered(keys)):
        return "" if own["preempttype"] in (None, "preempt/none") else str(own["preempttype"])
    if any(qos.preempt for qos in keys.qos):
        return BY_QOS
    if any(partition.preempt_mode not in _NO_PREEMPTION for partition in keys.partitions):
        return BY_TIER
    return ""


def partition_mode(keys: SiteKeys, partition: Partition) -> str:
    """PreemptMode of a partition; empty where its line need not say it.

    A partition without a mode is not preempted: the mode of the cluster, which hpcsite has to
    write, would open it. Where the site itself sets that one, it holds. GANG is left to the
    cluster: slurmctld complains of it in a partition, and ignores it.
    """
    words = (partition.preempt_mode or "").split(",")
    if own := ",".join(word for word in words if word not in ("", "GANG")):
        return own
    by_site = "preemptmode" in _lowered(keys)
    return "OFF" if preempt_type(keys) == BY_TIER and not by_site else ""


def _lowered(keys: SiteKeys) -> dict[str, Scalar | None]:
    return {key.lower(): value for key, value in keys.slurm_parameters.items()}
