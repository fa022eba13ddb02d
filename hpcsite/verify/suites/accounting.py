"""Suite `slurm`: what a job used and how it ended is in accounting."""

from hpcsite.slurm.job_records import SlurmJob
from hpcsite.verify import jobs
from hpcsite.verify.claims import Claim, Mode
from hpcsite.verify.cluster import Cluster, Target
from hpcsite.verify.context import Context
from hpcsite.verify.engine import Check
from hpcsite.verify.findings import Finding, NotMeasuredError, Tally
from hpcsite.verify.suites import needs

MEMORY_MIB = 200
EXIT_CODE = 7
_REFUSED = ("Connection refused", "Problem talking to the database", "storage is disabled")


def chosen(context: Context) -> Target:
    """Return a node for a single job: one with room now, with GPUs if there is any."""
    needs.require_nodes(context)
    cluster = context.cluster
    return next(iter(with_room(cluster) or cluster.gpu_targets or cluster.targets))


def with_room(cluster: Cluster) -> list[Target]:
    """Nodes on which the job would wait for nobody; those with GPUs first."""
    free = [target for target in cluster.targets if cluster.has_room(target, MEMORY_MIB)]
    return sorted(free, key=lambda target: not target.gpus)


def find_success(context: Context) -> Finding:
    """Look for a job that ends with 0: state, node, TRES."""
    return _find(context, "true", "COMPLETED", "0:0")


def find_failure(context: Context) -> Finding:
    """Look for a job that ends with 7: that is what must be recorded."""
    return _find(context, f"exit {EXIT_CODE}", "FAILED", f"{EXIT_CODE}:0")


def _find(context: Context, command: str, state: str, exit_code: str) -> Finding:
    target = chosen(context)
    flags = ["--gres=gpu:1"] if target.gpus else []
    (job_id,) = jobs.submit(context, target, command, *flags, memory_mib=MEMORY_MIB)
    jobs.wait_ended(context, [job_id], target)
    tally = Tally()
    try:
        record = jobs.recorded(context, [job_id], lambda job: job.ended).get(job_id)
    except NotMeasuredError as error:
        if any(word in str(error) for word in _REFUSED):
            tally.wrong.append(f"accounting does not answer: {error}")
            return tally.finding([target.name])
        raise
    expected = expected_tres(target)
    tally.wrong += record_faults(record, job_id, state, exit_code, target.name, expected)
    return tally.finding([target.name])


def expected_tres(target: Target) -> dict[str, float]:
    """TRES that a job of one task must have been given; CPUs are at least this many."""
    tres: dict[str, float] = {"node": 1, "mem": MEMORY_MIB}
    return tres | ({"gres/gpu": 1} if target.gpus else {})


def record_faults(
    record: SlurmJob | None,
    job_id: int,
    state: str,
    exit_code: str,
    node: str,
    tres: dict[str, float],
) -> list[str]:
    """Where a job's record differs from what is known to have happened."""
    if record is None:
        return [f"job {job_id} ended, but accounting does not know it"]
    faults = []
    if record.state != state:
        faults.append(f"job {job_id} is {record.state} in accounting, not {state}")
    if record.exit_code != exit_code:
        faults.append(f"job {job_id} has exit code {record.exit_code}, not {exit_code}")
    if record.nodes != node:
        faults.append(f"job {job_id} ran on {record.nodes or 'no node'}, not on {node}")
    for name, amount in tres.items():
        if record.tres.get(name, 0) != amount:
            given = record.tres.get(name, 0)
            faults.append(f"job {job_id} has {name}={given:g} in AllocTRES, not {amount:g}")
    if record.tres.get("cpu", 0) < 1:
        faults.append(f"job {job_id} has no cpu in AllocTRES")
    return faults


def light_on_chosen(context: Context) -> Claim:
    """One CPU of the node that is chosen."""
    some = [chosen(context).name] if context.cluster.targets else []
    return Claim(frozenset(some), Mode.LIGHT)


_NEEDS = (needs.compute_nodes(1), needs.accounting)
CHECKS = (
    Check(
        "slurm",
        "accounting",
        "A job's state, node, memory and GPU are in sacct as they were asked for.",
        find_success,
        _NEEDS,
        light_on_chosen,
    ),
    Check(
        "slurm",
        "exit_code",
        "A failing job's exit code is in sacct.",
        find_failure,
        _NEEDS,
        light_on_chosen,
    ),
)
