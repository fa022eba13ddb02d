"""What a run does about jobs of other runs before it begins, and about its own at its end."""

import re

from hpcsite.errors import CouldNotRunError
from hpcsite.slurm.job_records import read_queue
from hpcsite.verify.context import JOB_PREFIX, Context
from hpcsite.verify.findings import NotMeasuredError
from hpcsite.verify.jobs import cancel
from hpcsite.verify.owner import Owner, read_owner
from hpcsite.verify.transport import Answer


def cancel_stale(context: Context) -> list[int]:
    """Cancel jobs that a killed run left; their ids.

    Raises `NotMeasuredError`, and `CouldNotRunError` if another run goes on.
    """
    answer = context.user(["sh", "-c", "date +%s; exec squeue --me --json"], "stale-jobs")
    if not answer.ok:
        raise NotMeasuredError(f"squeue: {answer.complaint}")
    now = re.search(r"^\d+$", answer.stdout.partition("{")[0], re.MULTILINE)
    if now is None:
        raise NotMeasuredError("the submit host does not tell its time")
    stale = []
    for job in read_queue(answer.stdout).values():
        if owner := read_owner(job.comment):
            age_s = int(now[0]) - job.submitted
            if owner.origin != context.core.origin and age_s <= owner.lasts_s:
                raise _another_run(owner, context.core.user, owner.lasts_s - age_s)
            stale.append(job.id)
    cancel(context, stale)
    return stale


def _another_run(owner: Owner, user: str, left_s: int) -> CouldNotRunError:
    return CouldNotRunError(
        f"this cluster is being verified already by {owner.by}, run {owner.run}",
        hint=f"wait until that run is over; if it was killed, `scancel --name={JOB_PREFIX}"
        f"{owner.run}` as {user} ends its jobs, and so does a run in {left_s + 1} s or later",
    )


def cancel_all(context: Context) -> Answer:
    """Cancel every job of this run."""
    argv = ["scancel", "--quiet", "--me", f"--name={context.core.job_name}"]
    return context.user(argv, "cancel-all", timeout_s=15)
