"""What a deploy came to: one frozen record, from which the recap and the JSON are made."""

from datetime import datetime
from pathlib import Path
from typing import Literal

from hpcsite.deploy.changes import Change
from hpcsite.deploy.events import HostCounts, PlayStarted
from hpcsite.deploy.failures import Failure
from hpcsite.deploy.tally import HostFailure, Tally
from hpcsite.errors import ExitCode
from hpcsite.site.model import Frozen
from hpcsite.site.names import fold

Status = Literal["ok", "failed", "could-not-run", "interrupted"]


class HostSummary(Frozen):
    """How many tasks of one host ended how."""

    name: str
    ok: int = 0
    changed: int = 0
    skipped: int = 0
    failed: int = 0
    unreachable: int = 0


class Outcome(Frozen):
    """Result of one deploy; `hpcsite deploy --json` prints it."""

    schema_version: Literal[1] = 1
    site: str
    inventory: Path
    status: Status
    exit_code: int
    reason: str
    started: datetime
    duration_s: float
    check: bool
    limit: str | None
    layers: tuple[str, ...]
    hosts: tuple[HostSummary, ...]
    changes: tuple[Change, ...] = ()
    failures: tuple[Failure, ...]
    untouched: tuple[str, ...]
    ended_early: str
    run_dir: Path
    log: Path

    @property
    def changed(self) -> int:
        """Tasks that changed something, over all hosts."""
        return sum(host.changed for host in self.hosts)


class Verdict(Frozen):
    """Status, exit code and the reason for them where there is one."""

    status: Status
    exit_code: ExitCode
    reason: str = ""


def verdict(tally: Tally, *, code: int, critical: frozenset[str], interrupted: bool) -> Verdict:
    """Judge a run by its events and the exit code of `ansible-playbook`; nothing done is a failure.

    4: a host on which the site hangs is unreachable, or no task ran; 1: a host is out.
    """
    failures = tally.failures()
    out = {host: failure for host, failure in failures.items() if not failure.of_homes_only}
    if interrupted:
        where = _position(tally)
        return Verdict(status="interrupted", exit_code=ExitCode.INTERRUPTED, reason=where)
    if lost := {host: out[host] for host in critical if host in out}:
        return _critical_verdict(lost)
    alive = [host for host in _ran(tally) if host not in out]
    if failures:
        if not alive:
            return Verdict(
                status="could-not-run",
                exit_code=ExitCode.COULD_NOT_RUN
                if all(f.event.status == "unreachable" for f in out.values())
                else ExitCode.FAILED,
                reason="no host is left",
            )
        return Verdict(status="failed", exit_code=ExitCode.FAILED)
    if code or tally.finished is None or not alive:
        said = "\n".join(tally.last_lines)
        return Verdict(
            status="could-not-run",
            exit_code=ExitCode.COULD_NOT_RUN,
            reason=f"ansible-playbook ended with {code} and ran no task to its end\n{said}".strip(),
        )
    return Verdict(status="ok", exit_code=ExitCode.OK)


def summaries(tally: Tally) -> tuple[HostSummary, ...]:
    """Task counts per host, by name; a host that only met the gate has not failed."""
    out = tally.failures()
    return tuple(
        _summary(host, count, failed=host in out)
        for host, count in sorted(tally.host_counts().items())
    )


def ended_early(tally: Tally, last: PlayStarted) -> str:
    """Where a run ended that did not go through all of its plays; empty if it did.

    Ansible ends a run without a word when every host of a play failed.
    """
    return "" if tally.finished and tally.play == last else _position(tally)


def untouched(tally: Tally) -> tuple[str, ...]:
    """Hosts that passed the preflight and on which nothing was done, since a controller did not."""
    if tally.gate is None or tally.gate.layer != "preflight":
        return ()
    return tuple(sorted(tally.host_counts().keys() - tally.failures().keys()))


def _summary(host: str, count: HostCounts, *, failed: bool) -> HostSummary:
    return HostSummary(
        name=host,
        ok=count.ok,
        changed=count.changed,
        skipped=count.skipped,
        failed=count.failed if failed else 0,
        unreachable=count.unreachable,
    )


def _critical_verdict(lost: dict[str, HostFailure]) -> Verdict:
    unreachable = [host for host, failure in lost.items() if failure.event.status == "unreachable"]
    nodes = fold(unreachable or lost)
    what = "cannot be reached" if unreachable else "failed"
    return Verdict(
        status="could-not-run" if unreachable else "failed",
        exit_code=ExitCode.COULD_NOT_RUN if unreachable else ExitCode.FAILED,
        reason=f"stopped: {nodes} {what}, and the whole site hangs on it",
    )


def _ran(tally: Tally) -> list[str]:
    counts = tally.finished.hosts if tally.finished else {}
    return [host for host, count in counts.items() if count.ok or count.skipped]


def _position(tally: Tally) -> str:
    if not tally.layers:
        return "before the first task"
    play = f"in {tally.play.layer}: {tally.play.what}"
    return f"{play}, task “{tally.task.name}”" if tally.task else play
