"""Check `slurm/stuck_jobs`: no job starts or ends for ever, or runs past its limit.

How long each may take follows from slurm.conf: jobs are killed after KillWait, a step that cannot
be killed is given up after UnkillableStepTimeout, a node that is started has ResumeTimeout.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hpcsite.site.names import fold, unfold
from hpcsite.slurm.job_records import SlurmJob, read_queue
from hpcsite.slurm.node_records import SlurmNode, read_over_time_limits
from hpcsite.verify import jobs
from hpcsite.verify.context import Context
from hpcsite.verify.engine import Check
from hpcsite.verify.findings import Finding, NotMeasuredError, Tally
from hpcsite.verify.measure import scontrol_show
from hpcsite.verify.results import Certainty, Culprit, CulpritKind, Status
from hpcsite.verify.suites import needs

# slurmctld looks at limits every 30 s, and what it asks of a node may have to be asked again.
_MARGIN_S = 60
_DEFAULTS = {
    "KillWait": 30,
    "UnkillableStepTimeout": 60,
    "ResumeTimeout": 60,
    "BatchStartTimeout": 10,
}
# 65534 is no limit (slurm.conf(5), PrologEpilogTimeout).
_NO_LIMIT = 65534
_SQUEUE = "date +%s; exec squeue --json"
_REMEDY = (
    "on {nodes}: `ps -eo pid,stat,cmd` for processes of the job in state D (a dead file system, a "
    "GPU that hangs), slurmd's journal, a prolog or epilog that waits; restart slurmd, or reboot"
)


@dataclass(frozen=True)
class Limits:
    """Seconds that jobs may be in a state; `over` is None where jobs may run on without end."""

    completing: int
    configuring: int
    over: int | None

    @classmethod
    def of(cls, config: Mapping[str, str]) -> "Limits":
        """Read them of `scontrol show config`."""

        def seconds(key: str) -> int:
            return _number(config.get(key, ""), _DEFAULTS.get(key, 0))

        scripts = seconds("PrologEpilogTimeout")
        scripts = scripts if scripts < _NO_LIMIT else 0
        killing = seconds("KillWait") + seconds("UnkillableStepTimeout") + scripts
        beyond = config.get("OverTimeLimit", "0 min")
        over_min = _number(beyond, 0)
        endless = over_min >= _NO_LIMIT or "UNLIMITED" in beyond.upper() or "INF" in beyond.upper()
        return cls(
            completing=killing + _MARGIN_S,
            configuring=seconds("ResumeTimeout")
            + seconds("BatchStartTimeout")
            + scripts
            + _MARGIN_S,
            over=None if endless else over_min * 60 + killing + _MARGIN_S,
        )


@dataclass(frozen=True)
class Stuck:
    """A job that is stuck, in which state, and since how many seconds."""

    job: SlurmJob
    state: str
    seconds: int
    allowed: int

    @property
    def said(self) -> str:
        """Say so for a person."""
        kind = "runs past its limit" if self.state == "RUNNING" else f"is {self.state}"
        return f"job {self.job.id} {kind} since {self.seconds} s, at most {self.allowed} s is usual"


def stuck_jobs(queue: Iterable[SlurmJob], now: int, limits: Limits) -> list[Stuck]:
    """Return jobs that are longer in a state than it takes."""
    found = []
    for job in queue:
        if "COMPLETING" in job.states:
            state, since, allowed = "COMPLETING", job.ends, limits.completing
        elif "CONFIGURING" in job.states:
            state, since, allowed = "CONFIGURING", job.started, limits.configuring
        elif job.running and limits.over is not None:
            state, since, allowed = "RUNNING", job.ends, limits.over
        else:
            continue
        # 0 is a time that Slurm does not know, or a limit that is none.
        if since and now - since > allowed:
            found.append(Stuck(job, state, now - since, allowed))
    return found


def find_stuck(context: Context) -> Finding:
    """Look at everybody's jobs, and blame the nodes on which the stuck ones are."""
    config = context.cluster.config
    answer = _ask(context, private="jobs" in config.get("PrivateData", "").split(","))
    if isinstance(answer, Finding):
        return answer
    now, queue = answer
    limits = Limits.of(config)
    found = stuck_jobs(queue.values(), now, limits)
    if any(one.state == "RUNNING" for one in found):
        found = _beyond_partitions(context, found)
    if not found:
        return Finding(Status.PASS, f"{len(queue)} jobs seen", context.cluster.declared)
    wanted = {node for one in found for node in unfold(one.job.nodes) or ()}
    nodes = jobs.nodes_now(context, wanted) if wanted else {}
    blamed = culprits(found, nodes)
    tally = Tally([f"{one.said}, on {_where(one, nodes) or 'no node'}" for one in found])
    named = fold(node for culprit in blamed for node in (culprit.name,))
    return tally.finding(
        context.cluster.declared,
        culprits=blamed,
        remedy=_REMEDY.format(nodes=named) if named else "",
    )


def culprits(found: Iterable[Stuck], nodes: Mapping[str, SlurmNode]) -> tuple[Culprit, ...]:
    """Name the nodes that hold stuck jobs; of several nodes of a job none is told from others."""
    why: dict[str, list[str]] = {}
    sure: dict[str, Certainty] = {}
    for one in found:
        held = unfold(_where(one, nodes)) or ()
        certainty = Certainty.LIKELY if len(held) == 1 else Certainty.POSSIBLE
        for node in held:
            why.setdefault(node, []).append(one.said)
            sure[node] = min(certainty, sure.get(node, certainty), key=list(Certainty).index)
    named = [
        Culprit(
            kind=CulpritKind.NODE,
            name=node,
            nodes=node,
            certainty=sure[node],
            because="; ".join(said),
        )
        for node, said in why.items()
    ]
    return tuple(sorted(named, key=lambda each: list(Certainty).index(each.certainty)))


def _where(one: Stuck, nodes: Mapping[str, SlurmNode]) -> str:
    """Nodes that hold a job: of a completing one those that are not done, where Slurm says so."""
    mine = unfold(one.job.nodes) or ()
    if one.state == "COMPLETING":
        held = [node for node in mine if node in nodes and "COMPLETING" in nodes[node].states]
        mine = tuple(held) or mine
    return fold(mine)


def _ask(context: Context, *, private: bool) -> tuple[int, dict[int, SlurmJob]] | Finding:
    if private:
        script = f'[ "$(id -u)" = 0 ] || exit 9; {_SQUEUE}'
        answer = context.admin(context.core.host, ["sh", "-c", script], "squeue")
        if answer.rc == 9:
            return Finding(
                Status.SKIP, "PrivateData=jobs hides the jobs of others, and nobody is root"
            )
    else:
        answer = context.user(["sh", "-c", _SQUEUE], "squeue")
    if not answer.ok:
        raise NotMeasuredError(f"squeue: {answer.complaint}")
    clock = re.search(r"^\d+$", answer.stdout.partition("{")[0], re.MULTILINE | re.ASCII)
    if clock is None:
        raise NotMeasuredError("the submit host does not tell its time")
    return int(clock[0]), read_queue(answer.stdout)


def _beyond_partitions(context: Context, found: list[Stuck]) -> list[Stuck]:
    """Leave out jobs of partitions that themselves allow more (their OverTimeLimit)."""
    answer = context.user(scontrol_show("partitions"), "partitions")
    if not answer.ok:
        raise NotMeasuredError(f"scontrol: {answer.complaint}")
    more = read_over_time_limits(answer.stdout)
    return [
        one
        for one in found
        if one.state != "RUNNING" or one.seconds > one.allowed + more.get(one.job.partition, 0) * 60
    ]


def _number(text: str, default: int) -> int:
    found = re.match(r"\d+", text, re.ASCII)
    return int(found[0]) if found else default


STUCK = Check(
    "slurm",
    "stuck_jobs",
    "No job is starting or ending for longer than that takes, or runs past its limit.",
    find_stuck,
    (needs.compute_nodes(1),),
)
