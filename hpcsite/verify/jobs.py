"""Submitting, watching and cancelling jobs as the ordinary user."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence

from hpcsite.site.names import fold
from hpcsite.slurm.job_records import BUSY_REASONS, SlurmJob, read_accounting, read_queue
from hpcsite.slurm.node_records import SlurmNode, read_nodes
from hpcsite.verify.cluster import Target
from hpcsite.verify.context import JOB_PREFIX, Context
from hpcsite.verify.evidence import Evidence
from hpcsite.verify.findings import BusyError, NotMeasuredError
from hpcsite.verify.transport import Answer

POLL_S = 0.5
# What srun says last if --immediate ran out before it got its nodes (slurm_errno.c).
SRUN_BUSY = "Requested nodes are busy"
# slurmdbd writes a job's end at once, but slurmctld may hand it over in batches.
RECORDED_WITHIN_S = 20.0
_REPEAT = 'n=$1; shift; for i in $(seq "$n"); do "$@" || exit; done'

Jobs = dict[int, SlurmJob]


def sbatch(flags: Sequence[str], command: str) -> list[str]:
    """Return an sbatch that leaves no file behind and is never started a second time."""
    quiet = ["--output=/dev/null", "--error=/dev/null", "--input=/dev/null", "--no-requeue"]
    return ["sbatch", "--parsable", "--ntasks=1", *quiet, *flags, f"--wrap={command}"]


def submit(
    context: Context,
    target: Target | None,
    command: str,
    *flags: str,
    count: int = 1,
    minutes: int = 2,
    memory_mib: int = 64,
) -> list[int]:
    """Submit `count` equal jobs of one task; raises `NotMeasuredError` if one is refused."""
    common = context.job_flags(target, minutes=minutes, memory_mib=memory_mib)
    argv = sbatch([*common, *flags], command)
    if count > 1:
        argv = ["bash", "-c", _REPEAT, "submit", str(count), *argv]
    answer = context.user(argv, "submit")
    ids = job_ids(answer.stdout)
    if not answer.ok or len(ids) != count:
        raise NotMeasuredError(f"could not submit a job: {answer.complaint}")
    return ids


def job_ids(text: str) -> list[int]:
    """Job ids that `sbatch --parsable` printed: `17` or `17;cluster`, one a line."""
    words = (line.partition(";")[0].strip() for line in text.splitlines())
    return [int(word) for word in words if word.isdigit()]


def queue(context: Context) -> Jobs:
    """Return the run's jobs as slurmctld knows them, ended ones too; at most `POLL_S` seconds old.

    One question serves all checks, so that many checks ask slurmctld no more than one would.
    """
    core = context.core
    with core.lock:
        lock = core.locks.setdefault("queue", threading.Lock())
    with lock:
        asked, jobs, evidence = core.values.get("queue") or (
            float("-inf"),
            {},
            Evidence(core.folder, "shared.queue"),
        )
        if time.monotonic() - asked > POLL_S:
            argv = ["squeue", "--me", "--states=all", f"--name={core.job_name}", "--json"]
            answer = core.transport.run(core.host, argv, user=core.user, timeout_s=30)
            evidence.replace(answer, "squeue")
            if not answer.ok:
                raise NotMeasuredError(f"squeue: {answer.complaint}")
            jobs = read_queue(answer.stdout)
            core.values["queue"] = (time.monotonic(), jobs, evidence)
        context.evidence.add(evidence)
    return dict(jobs)


def wait(
    context: Context, ids: Iterable[int], until: Callable[[SlurmJob], bool], timeout_s: float
) -> Jobs:
    """Watch jobs until each satisfies `until` or the time is over; how they stood then.

    A job that Slurm no longer knows is missing from the answer.
    """
    wanted = tuple(ids)
    end = time.monotonic() + timeout_s
    while True:
        jobs = queue(context)
        found = {i: jobs[i] for i in wanted if i in jobs}
        if len(found) == len(wanted) and all(until(job) for job in found.values()):
            return found
        if time.monotonic() > end:
            return found
        context.pause(POLL_S)


def wait_started(context: Context, ids: Iterable[int]) -> Jobs:
    """Watch jobs until each runs or is over, as long as the run's patience lasts."""
    return wait(context, ids, lambda job: job.running or job.ended, context.options.wait_s)


def wait_ended(context: Context, ids: Iterable[int], target: Target, runs_s: float = 20) -> Jobs:
    """Wait until jobs on `target` that run at most `runs_s` seconds have started and ended.

    Raises `BusyError` for jobs that still wait for what others use, after cancelling them.
    """
    wanted = tuple(ids)
    jobs = wait(context, wanted, lambda job: job.ended, context.options.wait_s)
    if any(job.running or "COMPLETING" in job.states for job in jobs.values()):
        jobs = wait(context, wanted, lambda job: job.ended, runs_s)
    refuse_busy(context, jobs, target)
    return jobs


def refuse_busy(context: Context, jobs: Jobs, target: Target) -> None:
    """Raise `NotMeasuredError` if jobs wait for what others use; cancels them all."""
    waiting = [job for job in jobs.values() if job.state == "PENDING"]
    if waiting and all(job.reason in BUSY_REASONS for job in waiting):
        cancel(context, jobs)
        raise not_started(context, [target.name])


def not_started(context: Context, nodes: Sequence[str]) -> NotMeasuredError:
    """Why a job on these nodes did not start in time: one went down since, or all are in use."""
    if down := down_now(context, nodes):
        return NotMeasuredError(f"could not run: {down}")
    waited = f"{context.options.wait_s:.0f} s"
    return BusyError(f"{fold(nodes)} still in use by others after {waited}")


def down_now(context: Context, nodes: Sequence[str]) -> str:
    """Say which of some nodes take no job any more, with their state; empty if all do."""
    known = nodes_now(context, nodes).items()
    return "; ".join(f"{name} is {node.condition}" for name, node in known if not node.usable)


def nodes_now(context: Context, nodes: Iterable[str]) -> dict[str, SlurmNode]:
    """How nodes stand at this moment; raises `NotMeasuredError`."""
    answer = context.user(["scontrol", "show", "nodes", ",".join(nodes), "--json"], "nodes")
    if not answer.ok:
        raise NotMeasuredError(f"scontrol: {answer.complaint}")
    return read_nodes(answer.stdout)


def cancel(context: Context, ids: Iterable[int]) -> None:
    """Cancel jobs; those that are over do no harm."""
    if wanted := [str(i) for i in ids]:
        context.user(["scancel", "--quiet", *wanted], "cancel")


def recorded(
    context: Context,
    ids: Iterable[int],
    until: Callable[[SlurmJob], bool],
    timeout_s: float = RECORDED_WITHIN_S,
) -> Jobs:
    """Say what accounting says of jobs, as soon as each satisfies `until` or the time is over.

    Raises `NotMeasuredError` if sacct itself fails.
    """
    wanted = tuple(ids)
    argv = ["sacct", "--json", "--jobs=" + ",".join(str(i) for i in wanted)]
    end = time.monotonic() + timeout_s
    while True:
        answer = context.core.transport.run(
            context.core.host, argv, user=context.core.user, timeout_s=30
        )
        context.evidence.replace(answer, "sacct")
        if not answer.ok:
            raise NotMeasuredError(f"sacct: {answer.complaint}")
        jobs = read_accounting(answer.stdout)
        found = {i: jobs[i] for i in wanted if i in jobs}
        if len(found) == len(wanted) and all(until(job) for job in found.values()):
            return found
        if time.monotonic() > end:
            return found
        context.pause(POLL_S)


def cancel_stale(context: Context) -> list[int]:
    """Cancel jobs that a killed earlier run left; their ids. Raises `NotMeasuredError`."""
    answer = context.user(["squeue", "--me", "--json"], "stale-jobs")
    if not answer.ok:
        raise NotMeasuredError(f"squeue: {answer.complaint}")
    stale = [
        job.id for job in read_queue(answer.stdout).values() if job.name.startswith(JOB_PREFIX)
    ]
    cancel(context, stale)
    return stale


def cancel_all(context: Context) -> Answer:
    """Cancel every job of this run."""
    argv = ["scancel", "--quiet", "--me", f"--name={context.core.job_name}"]
    return context.user(argv, "cancel-all", timeout_s=15)
