"""Runs checks: needs first, side by side where their claims allow it, each to a result."""

import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from hpcsite.site.names import fold
from hpcsite.slurm.node_records import SlurmOutputError
from hpcsite.verify.claims import Claim
from hpcsite.verify.cluster import Cluster
from hpcsite.verify.context import Context, Core
from hpcsite.verify.evidence import Evidence
from hpcsite.verify.findings import Finding, NotMeasuredError
from hpcsite.verify.measure import refreshed
from hpcsite.verify.results import INTERRUPTED, Result, Status
from hpcsite.verify.transport import InterruptedRunError, UnreachableError

MAX_WORKERS = 8

Need = Callable[[Context], str]


class Tag(StrEnum):
    """When a check is worth its time: each day, before a cluster is taken over, over a night."""

    QUICK = "quick"
    ACCEPTANCE = "acceptance"
    SOAK = "soak"


def _nothing_claimed(_: Context) -> Claim:
    return Claim()


@dataclass(frozen=True)
class Check:
    """Something that is proved: what it needs, what it claims, how it is run.

    A need answers why it is not met, or nothing; the first that is not met makes the check SKIP.
    `run` may raise `NotMeasuredError`, which is an ERROR.
    """

    suite: str
    name: str
    about: str
    run: Callable[[Context], Finding]
    needs: tuple[Need, ...] = ()
    claim: Callable[[Context], Claim] = _nothing_claimed
    tags: frozenset[Tag] = frozenset((Tag.QUICK, Tag.ACCEPTANCE))

    @property
    def title(self) -> str:
        """Suite and name."""
        return f"{self.suite}/{self.name}"


class Listener(Protocol):
    """Is told how a run goes; called from one thread only."""

    def planned(self, checks: Sequence[Check]) -> None:
        """Take note of the checks that will be run."""

    def started(self, check: Check) -> None:
        """Take note that a check begins."""

    def finished(self, result: Result) -> None:
        """Take note of a check's verdict."""


@dataclass
class _Schedule:
    waiting: list[Check]
    active: dict[Future[Result], tuple[Check, Claim]] = field(default_factory=dict)


def run_checks(
    core: Core, cluster: Cluster, checks: Sequence[Check], listener: Listener
) -> tuple[list[Result], bool]:
    """Run all checks; results in the order of `checks`, and whether the run was interrupted.

    An interrupted run has an ERROR for each check that did not finish. After something went wrong,
    the checks that are still to come see the nodes as they then are: one that went down is waited
    for once, not by each check.
    """
    listener.planned(checks)
    done: dict[str, Result] = {}
    schedule = _Schedule(list(checks))
    interrupted = False
    with ThreadPoolExecutor(MAX_WORKERS, thread_name_prefix="check") as pool:
        try:
            while schedule.waiting or schedule.active:
                for check in _startable(core, cluster, schedule, pool):
                    listener.started(check)
                wrong = False
                for result in _finished(schedule):
                    done[f"{result.suite}/{result.check}"] = result
                    listener.finished(result)
                    wrong = wrong or result.status in (Status.FAIL, Status.ERROR)
                if wrong and schedule.waiting:
                    cluster = refreshed(core, cluster)
        except KeyboardInterrupt:
            interrupted = True
            core.stop.set()
            core.transport.interrupt()
    return [done.get(check.title) or _interrupted(check) for check in checks], interrupted


def _startable(
    core: Core, cluster: Cluster, schedule: _Schedule, pool: ThreadPoolExecutor
) -> Iterable[Check]:
    """Start what fits beside what runs, in order."""
    for check in list(schedule.waiting):
        if len(schedule.active) >= MAX_WORKERS:
            return
        context = Context(core, cluster, Evidence(core.folder, f"{check.suite}.{check.name}"))
        claim = check.claim(context)
        if claim.fits(claim for _, claim in schedule.active.values()):
            schedule.waiting.remove(check)
            schedule.active[pool.submit(execute, check, context)] = (check, claim)
            yield check


def _finished(schedule: _Schedule) -> Iterable[Result]:
    ready, _ = wait_for(schedule.active, return_when=FIRST_COMPLETED)
    for future in ready:
        del schedule.active[future]
        yield future.result()


def execute(check: Check, context: Context) -> Result:
    """Run one check to its result; whatever it raises becomes an ERROR with the reason."""
    begin = time.monotonic()
    finding = _find(check, context)
    return Result(
        suite=check.suite,
        check=check.name,
        about=check.about,
        nodes=fold(finding.nodes),
        status=finding.status,
        reason=finding.reason,
        measurements=finding.measurements,
        properties=finding.properties,
        culprits=finding.culprits,
        remedy=finding.remedy,
        commands=context.evidence.commands,
        raw=context.evidence.raw,
        seconds=round(time.monotonic() - begin, 3),
    )


def _find(check: Check, context: Context) -> Finding:
    try:
        for need in check.needs:
            if missing := need(context):
                return Finding(Status.SKIP, missing)
        return check.run(context)
    except (NotMeasuredError, SlurmOutputError) as error:
        return Finding(Status.ERROR, str(error))
    except UnreachableError as error:
        return Finding(Status.ERROR, f"cannot reach {error}")
    except InterruptedRunError:
        return Finding(Status.ERROR, INTERRUPTED)
    except Exception as bug:  # noqa: BLE001 - one check's bug must not take the others' results
        context.evidence.keep("traceback.txt", traceback.format_exc())
        return Finding(Status.ERROR, f"a bug in hpcsite: {type(bug).__name__}: {bug}")


def _interrupted(check: Check) -> Result:
    return Result(
        suite=check.suite,
        check=check.name,
        about=check.about,
        status=Status.ERROR,
        reason=INTERRUPTED,
    )
