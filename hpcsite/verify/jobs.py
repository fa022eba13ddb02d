"""Submitting, watching and cancelling jobs as the ordinary user."""

import re
import shlex
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from hpcsite.site.names import fold
from hpcsite.slurm.job_records import BUSY_REASONS, SlurmJob, read_accounting, read_queue
from hpcsite.slurm.node_records import SlurmNode, read_nodes
from hpcsite.verify.cluster import Target
from hpcsite.verify.context import Context
from hpcsite.verify.evidence import Evidence
from hpcsite.verify.findings import BusyError, NotMeasuredError
from hpcsite.verify.measure import scontrol_show

POLL_S = 0.5
_LOOK_AGAIN_S = 2.0
# What srun says last if --immediate ran out before it got its nodes (slurm_errno.c).
SRUN_BUSY = "Requested nodes are busy"
# slurmdbd writes a job's end at once, but slurmctld may hand it over in batches.
RECORDED_WITHIN_S = 20.0
# Of the time, at most one part in so many is spent asking slurmctld for the queue.
_QUEUE_SHARE = 5
_FORGOTTEN = "Invalid job id specified"
_REPEAT = 'n=$1; shift; for i in $(seq "$n"); do "$@" || exit; done'

# One job a node from one command; `$1` is a node, `$2` its partition.
_EACH = """
one() {{
  said=$({sbatch} --nodelist="$1" --partition="$2" </dev/null 2>&1)
  printf '@ %s %s %s\n' "$1" "$?" "$(printf %s "$said" | tr '\n' ' ')"
}}
while [ $# -gt 0 ]; do
  while [ "$(jobs -rp | wc -l)" -ge 8 ]; do wait -n; done
  one "$1" "$2" &
  shift 2
done
wait
"""
_SUBMITTED_WITHIN_S = 0.2

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


def submit_each(
    context: Context, targets: Sequence[Target], command: str
) -> tuple[dict[int, str], list[str]]:
    """Submit a job to each target by one command; nodes by job id, and what was refused.

    Raises `NotMeasuredError` if what sbatch said cannot be read.
    """
    flags = sbatch(context.job_flags(None, minutes=2), command)
    script = _EACH.format(sbatch=shlex.join(flags))
    pairs = [word for target in targets for word in (target.name, target.partition)]
    within = 30 + _SUBMITTED_WITHIN_S * len(targets)
    answer = context.user(["bash", "-c", script, "submit-each", *pairs], "submit", within)
    said = re.findall(r"^@ (\S+) (\d+) (.*)$", answer.stdout, re.MULTILINE)
    if missing := {target.name for target in targets} - {node for node, _, _ in said}:
        raise NotMeasuredError(f"could not submit a job for {fold(missing)}: {answer.complaint}")
    ids: dict[int, str] = {}
    refused: dict[str, list[str]] = {}
    for node, rc, words in said:
        made = job_ids(words.replace(" ", "\n"))
        if rc == "0" and made:
            ids[made[-1]] = node
        else:
            refused.setdefault(words.strip(), []).append(node)
    return ids, [f"could not submit a job for {fold(n)}: {why}" for why, n in refused.items()]


def job_ids(text: str) -> list[int]:
    """Job ids that `sbatch --parsable` printed: `17` or `17;cluster`, one a line."""
    words = (line.partition(";")[0].strip() for line in text.splitlines())
    return [int(word) for word in words if word.isdigit()]


def queue(context: Context, since: float = 0.0) -> Jobs:
    """Return the jobs that a check waits for as slurmctld knows them, as of a moment ago.

    Of hundreds that ended before, slurmctld would still tell megabytes. One question serves all
    checks, so that many ask slurmctld no more than one would, and less often the longer it takes to
    answer. `since` is a time of `time.monotonic`: what was asked before is too old.
    """
    core = context.core
    with core.lock:
        lock = core.locks.setdefault("queue", threading.Lock())
    with lock:
        asked, fresh_until, jobs, evidence = core.values.get("queue") or (
            float("-inf"),
            float("-inf"),
            {},
            Evidence(core.folder, "shared.queue"),
        )
        if time.monotonic() > fresh_until or asked < since:
            asked = time.monotonic()
            argv = ["squeue", "--me", "--states=all", f"--name={core.job_name}", "--json"]
            with core.lock:
                watched = sorted(core.values.get("watched", ()))
            if watched:
                argv.append("--jobs=" + ",".join(map(str, watched)))
            answer = core.transport.run(core.host, argv, user=core.user, timeout_s=30)
            evidence.replace(answer, "squeue")
            # Of a single job that it forgot, squeue says so; of several, it leaves them out.
            if not answer.ok and _FORGOTTEN not in answer.stderr:
                raise NotMeasuredError(f"squeue: {answer.complaint}")
            jobs = read_queue(answer.stdout) if answer.ok else {}
            now = time.monotonic()
            fresh_until = now + max(POLL_S, (now - asked) * _QUEUE_SHARE)
            core.values["queue"] = (asked, fresh_until, jobs, evidence)
        context.evidence.add(evidence)
    return dict(jobs)


def wait(
    context: Context, ids: Iterable[int], until: Callable[[SlurmJob], bool], timeout_s: float
) -> Jobs:
    """Watch jobs until each satisfies `until` or the time is over; how they stood then.

    slurmctld forgets an ended job after a while (slurm.conf's MinJobAge); accounting tells how it
    ended. A job that neither knows is missing from the answer. Raises `NotMeasuredError`.
    """
    wanted = tuple(ids)
    with _watching(context, wanted):
        return _watch(context, wanted, until, timeout_s)


@contextmanager
def _watching(context: Context, ids: Sequence[int]) -> Iterator[None]:
    """Have `queue` ask for jobs."""
    core = context.core
    with core.lock:
        core.values.setdefault("watched", Counter()).update(ids)
    try:
        yield
    finally:
        with core.lock:
            core.values["watched"] -= Counter(ids)


def _watch(
    context: Context, wanted: Sequence[int], until: Callable[[SlurmJob], bool], timeout_s: float
) -> Jobs:
    begin = time.monotonic()
    end = begin + timeout_s
    missing: set[int] = set()
    forgotten: Jobs = {}
    over = False
    while True:
        # What was asked before the jobs were watched does not know them.
        jobs = forgotten | queue(context, end if over else begin)
        # slurmctld may yet learn of a job that is missing from it; not so the second time.
        if gone := missing.difference(jobs):
            forgotten |= _ended_before(context, gone)
            jobs |= forgotten
        missing = set(wanted).difference(jobs)
        found = {i: jobs[i] for i in wanted if i in jobs}
        if over or (len(found) == len(wanted) and all(until(job) for job in found.values())):
            return found
        # What is known by now may be much older: how they stood at the end takes one more look.
        over = time.monotonic() > end
        if not over:
            context.pause(_LOOK_AGAIN_S if missing else POLL_S)


def _ended_before(context: Context, ids: Iterable[int]) -> Jobs:
    try:
        known = _accounting(context, ids)
    except NotMeasuredError as error:
        raise NotMeasuredError(
            f"slurmctld forgot jobs that accounting cannot be asked for: {error}"
        ) from error
    return {i: job for i, job in known.items() if job.ended}


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
    return why_not_started(context, nodes, nodes_now(context, nodes))


def why_not_started(
    context: Context, nodes: Sequence[str], now: dict[str, SlurmNode]
) -> NotMeasuredError:
    """Say as `not_started` does, of nodes that were asked for already."""
    if down := _down(nodes, now):
        return NotMeasuredError(f"could not run: {down}")
    waited = f"{context.options.wait_s:.0f} s"
    return BusyError(f"{fold(nodes)} still in use by others after {waited}")


def down_now(context: Context, nodes: Sequence[str]) -> str:
    """Say which of some nodes take no job any more, with their state; empty if all do."""
    return _down(nodes, nodes_now(context, nodes))


def _down(nodes: Sequence[str], now: dict[str, SlurmNode]) -> str:
    known = [now[name] for name in nodes if name in now]
    return "; ".join(f"{node.name} is {node.condition}" for node in known if not node.usable)


def nodes_now(context: Context, nodes: Iterable[str]) -> dict[str, SlurmNode]:
    """How nodes stand at this moment; raises `NotMeasuredError`."""
    answer = context.user(scontrol_show("nodes", nodes), "nodes")
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
    end = time.monotonic() + timeout_s
    while True:
        found = _accounting(context, wanted)
        if len(found) == len(wanted) and all(until(job) for job in found.values()):
            return found
        if time.monotonic() > end:
            return found
        context.pause(POLL_S)


def _accounting(context: Context, ids: Iterable[int]) -> Jobs:
    core, wanted = context.core, frozenset(ids)
    argv = ["sacct", "--json", "--jobs=" + ",".join(str(i) for i in sorted(wanted))]
    answer = core.transport.run(core.host, argv, user=core.user, timeout_s=30)
    context.evidence.replace(answer, "sacct")
    if not answer.ok:
        raise NotMeasuredError(f"sacct: {answer.complaint}")
    return {i: job for i, job in read_accounting(answer.stdout).items() if i in wanted}
