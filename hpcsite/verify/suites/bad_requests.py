"""Requests that cannot be met, and why Slurm must say that it refuses them."""

import re
from dataclasses import dataclass

from hpcsite.slurm.node_records import read_time_limits
from hpcsite.verify import jobs
from hpcsite.verify.context import Context
from hpcsite.verify.findings import Finding, NotMeasuredError, Tally
from hpcsite.verify.measure import scontrol_show

# What Slurm says (slurm_errno.c) of a request for more than there is; a QOS may forbid it first.
_POLICY = r"violates accounting/QOS policy"
_NODES = (
    r"Node count specification invalid|Requested node configuration is not available"
    r"|More processors requested than permitted|Requested partition configuration not available"
)
_GPUS = (
    r"Requested node configuration is not available"
    r"|Invalid generic resource \(gres\) specification"
)
_ENFORCED = frozenset(("ALL", "ANY", "YES"))


@dataclass(frozen=True)
class Request:
    """What no cluster may take; `refusal` is a pattern of what Slurm says of just this mistake."""

    what: str
    flags: tuple[str, ...]
    refusal: str


def impossible(context: Context) -> list[Request]:
    """Return requests that cannot be met by this cluster."""
    cluster = context.cluster
    nodes = len(cluster.nodes) + 1
    most = max((known.gres.get("gpu", 0) for known in cluster.nodes.values()), default=0)
    return [
        Request(
            "an unknown partition",
            ("--partition=hpcsite-has-no-such-partition",),
            r"(?i)invalid partition (?:name )?specified",
        ),
        Request(
            f"{nodes} nodes of {nodes - 1}",
            (f"--nodes={nodes}", f"--ntasks={nodes}"),
            f"{_NODES}|{_POLICY}",
        ),
        Request(
            f"{most + 1} GPUs on a node",
            ("--nodes=1", f"--gres=gpu:{most + 1}"),
            f"{_GPUS}|{_POLICY}",
        ),
    ]


def too_long(context: Context, limits: dict[str, int]) -> list[Request]:
    """Return a request for more time than its partition allows; none if no partition limits it."""
    partitions = {target.partition: None for target in context.cluster.targets}
    partition = next((name for name in partitions if name in limits), None)
    if partition is None:
        return []
    minutes = limits[partition]
    return [
        Request(
            f"{minutes + 1} minutes in partition {partition}, which allows {minutes}",
            (f"--partition={partition}", f"--time={minutes + 1}"),
            f"[Tt]ime limit is invalid|{_POLICY}",
        )
    ]


def find_bad_requests(context: Context) -> Finding:
    """Each impossible request is refused at once, and for what is wrong with it."""
    cluster = context.cluster
    tally, requests, note = Tally(), impossible(context), ""
    enforced = cluster.config.get("EnforcePartLimits", "NO")
    # Without it, a job over a partition's limits is taken, and waits for ever.
    if enforced in _ENFORCED and not cluster.targets:
        note = "Time over a partition's limit was not tried: no node takes jobs"
    elif enforced in _ENFORCED:
        requests += too_long(context, _limits(context))
    else:
        note = f"Time over a partition's limit was not tried: EnforcePartLimits is {enforced}"
    for request in requests:
        argv = jobs.sbatch([*context.job_flags(None, minutes=1), *request.flags], "true")
        answer = context.user(argv, "bad-request")
        if accepted := jobs.job_ids(answer.stdout):
            jobs.cancel(context, accepted)
            tally.wrong.append(f"Slurm took a job that asks for {request.what}")
        elif not re.search(request.refusal, answer.stderr):
            tally.unknown.append(
                f"asking for {request.what} is not refused for that: {answer.complaint}"
            )
    return tally.finding(reason=note)


def _limits(context: Context) -> dict[str, int]:
    answer = context.user(scontrol_show("partitions"), "partitions")
    if not answer.ok:
        raise NotMeasuredError(f"scontrol: {answer.complaint}")
    return read_time_limits(answer.stdout)
