"""Adds up the events of a run: what each layer does, and which host failed in which task."""

from collections import Counter, deque
from dataclasses import dataclass, field

from hpcsite.deploy.events import (
    Event,
    Finished,
    HostCounts,
    HostEvent,
    HostStatus,
    Output,
    PlayStarted,
    TaskStarted,
)

# Task of roles/preflight that fails on every host, so that nothing runs after it, when a host
# that the site hangs on is out. It says nothing about the host it fails on. A test compares.
GATE_TASK = "Stop because the controller or the database cannot be used"
_LAST_LINES = 20
_RANK: dict[HostStatus, int] = {"skipped": 0, "ok": 0, "changed": 1, "failed": 2, "unreachable": 3}


@dataclass
class LayerTally:
    """One layer so far: the worst that each host did in it."""

    name: str
    hosts: dict[str, HostStatus] = field(default_factory=dict)
    tasks: int = 0

    def count(self, *statuses: HostStatus) -> int:
        """Count the hosts whose worst result is one of these."""
        return sum(1 for status in self.hosts.values() if status in statuses)


@dataclass(frozen=True)
class HostFailure:
    """The last failure of a host, and where it was."""

    event: HostEvent
    layer: str


@dataclass
class Tally:
    """State of a run, fed with its events in order."""

    layers: dict[str, LayerTally] = field(default_factory=dict)
    play: PlayStarted = field(default_factory=lambda: PlayStarted("", ""))
    task: TaskStarted | None = None
    finished: Finished | None = None
    gated: set[str] = field(default_factory=set)
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    last_lines: deque[str] = field(default_factory=lambda: deque(maxlen=_LAST_LINES))
    _failures: dict[str, HostFailure] = field(default_factory=dict)
    _went_on: set[str] = field(default_factory=set)

    @property
    def layer(self) -> LayerTally | None:
        """The layer that runs now."""
        return self.layers.get(self.play.layer)

    def add(self, event: Event) -> None:
        """Take one event in."""
        if isinstance(event, PlayStarted):
            self.play = event
            self.task = None
            self.layers.setdefault(event.layer, LayerTally(event.layer))
        elif isinstance(event, TaskStarted):
            self.task = event
            if self.layer:
                self.layer.tasks += 1
        elif isinstance(event, HostEvent):
            self._add_host(event)
        elif isinstance(event, Finished):
            self.finished = event
        elif isinstance(event, Output):
            self.last_lines.extend(line for line in event.text.splitlines() if line.strip())

    def host_counts(self) -> dict[str, HostCounts]:
        """Tasks of each host by how they ended: Ansible's account, or ours if it gave none."""
        if self.finished is not None:
            return self.finished.hosts
        return {host: HostCounts(**counter) for host, counter in self.counts.items()}

    def failures(self) -> dict[str, HostFailure]:
        """Hosts that are out, with their last failure.

        Ansible's own account decides where there is one. Without it (the run was ended), a host
        that went on after a failure was rescued.
        """
        if self.finished is None:
            return {h: f for h, f in self._failures.items() if h not in self._went_on}
        out = [h for h, c in self.finished.hosts.items() if c.failed or c.unreachable]
        return {h: self._failures.get(h, _unseen(h)) for h in out if h not in self.gated}

    def out_of(self, hosts: frozenset[str]) -> frozenset[str]:
        """Those of `hosts` that failed or are unreachable, while the run goes on."""
        return frozenset(h for h in hosts if h in self._failures and h not in self._went_on)

    def _add_host(self, event: HostEvent) -> None:
        broken = event.status in {"failed", "unreachable"} and not event.ignored
        if broken and event.task.endswith(GATE_TASK):
            if event.host not in self._failures:
                self.gated.add(event.host)
            return
        self._count(event, ended="ignored" if event.ignored else event.status)
        if broken:
            self._failures[event.host] = HostFailure(event, self.play.layer)
            self._went_on.discard(event.host)
        elif event.host in self._failures:
            self._went_on.add(event.host)
        if self.layer:
            status = "ok" if event.ignored else event.status
            known = self.layer.hosts.get(event.host, "skipped")
            # A rescued failure is no failure: what the host does afterwards counts.
            if _RANK[status] >= _RANK[known] or event.host in self._went_on:
                self.layer.hosts[event.host] = status

    def _count(self, event: HostEvent, *, ended: str) -> None:
        counter = self.counts.setdefault(event.host, Counter())
        counter[ended] += 1
        if ended == "changed":
            counter["ok"] += 1  # as Ansible counts: changed is a kind of ok


def _unseen(host: str) -> HostFailure:
    """Ansible counts a failure that no event told of: still a failure."""
    event = HostEvent(host, "failed", "unknown", None, "Ansible counts a failure here: see the log")
    return HostFailure(event, "")
