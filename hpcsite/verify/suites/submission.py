"""Suite `slurm`: jobs start where they should, end when they must, or are refused."""

import re
from collections.abc import Sequence

from hpcsite.site.names import fold
from hpcsite.slurm.job_records import BUSY_REASONS, SlurmJob
from hpcsite.verify import jobs
from hpcsite.verify.claims import Claim, Mode
from hpcsite.verify.cluster import Target, names
from hpcsite.verify.context import Context
from hpcsite.verify.engine import Check
from hpcsite.verify.findings import Finding, Tally
from hpcsite.verify.results import Status
from hpcsite.verify.suites import needs
from hpcsite.verify.suites.bad_requests import find_bad_requests
from hpcsite.verify.suites.needs import light_on_all

# slurmctld looks for jobs over their time every 30 s (slurmctld/job_mgr.c, PERIODIC_TIMEOUT).
_TIMEOUT_SEEN_S = 45


def find_every_node(context: Context) -> Finding:
    """Run a batch job on each node, all submitted first; then one question serves them all."""
    cluster = context.cluster
    needs.require_nodes(context)
    tally = Tally(unknown=list(cluster.blocked))
    ids, refused = jobs.submit_each(context, cluster.targets, "true")
    tally.unknown += refused
    done = jobs.wait(context, ids, lambda job: job.ended, context.patience(len(ids)))
    late = [ids[i] for i, job in done.items() if not job.ended]
    now = jobs.nodes_now(context, late) if late else {}
    busy = []
    for job_id, node in ids.items():
        job = done.get(job_id)
        if job and waits_for_others(job) and node in now and now[node].usable:
            busy.append(node)
        elif fault := batch_fault(job, node):
            state = f"; {node} is {now[node].condition}" if node in now else ""
            tally.wrong.append(f"{fault}{state}")
    if busy:
        tally.unknown.append(f"could not run: nodes busy: {fold(busy)}")
    jobs.cancel(context, [i for i in ids if i in done and not done[i].ended])
    return tally.finding(cluster.declared)


def waits_for_others(job: SlurmJob) -> bool:
    """Whether it waits with nothing wrong."""
    return job.state == "PENDING" and job.reason in BUSY_REASONS


def batch_fault(job: SlurmJob | None, node: str) -> str:
    """Say what is wrong with a batch job that should have run `true` on a node."""
    if job is None:
        return f"Slurm lost the job on {node}"
    if job.state != "COMPLETED":
        why = f" ({job.reason})" if job.reason not in ("", "None") else ""
        return f"the job on {node} did not complete: {job.state}{why}"
    if job.nodes != node:
        return f"the job for {node} ran on {job.nodes}"
    return "" if job.exit_code == "0:0" else f"the job on {node} ended with {job.exit_code}"


def find_multi_node(context: Context) -> Finding:
    """One job over all usable nodes of the partition; each task tells its node."""
    targets = context.cluster.together(2)
    patience = context.patience(len(targets))
    argv = [
        "srun",
        *context.job_flags(None, minutes=2),
        f"--immediate={max(int(patience), 1)}",
        f"--partition={targets[0].partition}",
        f"--nodelist={fold(names(targets))}",
        f"--nodes={len(targets)}",
        f"--ntasks={len(targets)}",
        "--ntasks-per-node=1",
        "--input=none",
        "sh",
        "-c",
        'echo "node=$SLURMD_NODENAME of=$SLURM_NTASKS"',
    ]
    answer = context.user(argv, "multi-node", timeout_s=patience + 30)
    if not answer.ok and jobs.SRUN_BUSY in answer.stderr:
        raise jobs.not_started(context, names(targets))
    tally = Tally(read_tasks(answer.stdout, names(targets), answer.complaint))
    return tally.finding(names(targets))


def read_tasks(text: str, expected: Sequence[str], complaint: str) -> list[str]:
    """Say what is wrong with a multi-node job's output: each node once, each knowing all tasks."""
    found = re.findall(r"^node=(\S+) of=(\d+)$", text, flags=re.MULTILINE)
    ran = [node for node, _ in found]
    faults = []
    if missing := [node for node in expected if node not in ran]:
        faults.append(f"no task ran on {fold(missing)}: {complaint}")
    if len(ran) != len(set(ran)):
        faults.append("two tasks ran on the same node")
    if stray := sorted(set(ran) - set(expected)):
        faults.append(f"a task ran on {fold(stray)}")
    if any(int(of) != len(expected) for _, of in found):
        faults.append("a task was told a wrong number of tasks")
    return faults


def _last_node(context: Context) -> list[Target]:
    return list(context.cluster.targets[-1:])


def find_time_limit(context: Context) -> Finding:
    """See a sleeping job ended as TIMEOUT soon after its limit, which is moved close."""
    needs.require_nodes(context)
    (target,) = _last_node(context)
    nodes = (target.name,)
    if context.cluster.config.get("OverTimeLimit", "0 min").split()[0] != "0":
        allowed = context.cluster.config["OverTimeLimit"]
        return Finding(Status.SKIP, f"OverTimeLimit lets jobs run on for {allowed}", nodes)
    (job_id,) = jobs.submit(context, target, "sleep 600", minutes=1)
    started = jobs.wait_started(context, [job_id])
    jobs.refuse_busy(context, started, target)
    # A minute is the shortest limit, so the end is moved; users may shorten their own jobs.
    moved = context.user(["scontrol", "update", f"JobId={job_id}", "EndTime=now+2"], "shorten")
    within = _TIMEOUT_SEEN_S if moved.ok else _TIMEOUT_SEEN_S + 60
    job = jobs.wait(context, [job_id], lambda job: job.ended, within).get(job_id)
    jobs.cancel(context, [job_id])
    tally = Tally()
    if job is None or job.state != "TIMEOUT":
        state = job.state if job else "unknown to Slurm"
        tally.wrong.append(f"a job past its time limit on {target.name} is {state}, not TIMEOUT")
    return tally.finding(nodes)


def _light_on_last(context: Context) -> Claim:
    return Claim(frozenset(names(tuple(_last_node(context)))), Mode.LIGHT)


ONE = (needs.compute_nodes(1),)
CHECKS = (
    Check(
        "slurm",
        "time_limit",
        "A job past its time limit is ended as TIMEOUT.",
        find_time_limit,
        ONE,
        _light_on_last,
    ),
    Check(
        "slurm",
        "every_node",
        "A batch job runs on every compute node and ends with 0.",
        find_every_node,
        ONE,
        light_on_all,
    ),
    Check(
        "slurm",
        "multi_node",
        "One job spans all nodes of a partition, one task a node.",
        find_multi_node,
        (needs.compute_nodes(2),),
        light_on_all,
    ),
    Check(
        "slurm",
        "bad_requests",
        "Requests that cannot be met are refused when they are made.",
        find_bad_requests,
        ONE,
    ),
)
