"""Adds up the events of a run: what each layer does, and which host failed in which task."""

from collections import Counter, deque
from dataclasses import dataclass, field

from hpcsite.deploy.events import (
    Event,
    Finished,
    HostCounts,
    HostEvent,
    Output,
    PlayStarted,
    TaskStarted,
)

# Task that ends a playbook when a host that the site hangs on is out. It fails on some other host
# and says nothing about that one. A test compares the name with the playbooks'.
GATE_TASK = "Stop when a controller is broken"
# Task of the last play that fails on a host where all is done but some users' home folders.
HOMES_TASK = "Stop at home folders that were left out"
_LAST_LINES = 20


@dataclass
class LayerTally:
    """One layer so far: the hosts that took part, those that changed and those that are out."""

    name: str
    hosts: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    out: set[str] = field(default_factory=set)

    def add(self, event: HostEvent, *, broken: bool) -> None:
        """Take one result in. A host that goes on after a failure was rescued."""
        self.hosts.add(event.host)
        self.out.discard(event.host)
        if broken:
            self.out.add(event.host)
        if event.status == "changed":
            self.changed.add(event.host)


@dataclass(frozen=True)
class HostFailure:
    """The last failure of a host, and where it was."""

    event: HostEvent
    layer: str

    @property
    def of_homes_only(self) -> bool:
        """Whether all else is done on the host."""
        return self.event.task.endswith(HOMES_TASK)


@dataclass
class Tally:
    """State of a run, fed with its events in order."""

    layers: dict[str, LayerTally] = field(default_factory=dict)
    play: PlayStarted = field(default_factory=lambda: PlayStarted("", ""))
    task: TaskStarted | None = None
    finished: Finished | None = None
    gate: HostFailure | None = None
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    changes: list[tuple[str, HostEvent]] = field(default_factory=list)  # each with its layer
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
        gated = {self.gate.event.host} if self.gate else set()
        return {
            host: self._failures.get(host, _unseen(host))
            for host in out
            if host in self._failures or host not in gated
        }

    def went_beyond(self, layer: str) -> bool:
        """Whether a task of another layer ended on some host."""
        return any(other.hosts for name, other in self.layers.items() if name != layer)

    def out_of(self, hosts: frozenset[str]) -> frozenset[str]:
        """Those of `hosts` that failed or are unreachable, while the run goes on."""
        return frozenset(h for h in hosts if h in self._failures and h not in self._went_on)

    def _add_host(self, event: HostEvent) -> None:
        broken = event.status in {"failed", "unreachable"} and not event.ignored
        if broken and event.task.endswith(GATE_TASK):
            self.gate = HostFailure(event, self.play.layer)
            return
        self._count(event, ended="ignored" if event.ignored else event.status)
        if broken:
            self._failures[event.host] = HostFailure(event, self.play.layer)
            self._went_on.discard(event.host)
        elif event.host in self._failures:
            self._went_on.add(event.host)
        if self.layer and event.status != "skipped":
            self.layer.add(event, broken=broken)
        if event.status == "changed":
            self.changes.append((self.play.layer, event))

    def _count(self, event: HostEvent, *, ended: str) -> None:
        counter = self.counts.setdefault(event.host, Counter())
        counter[ended] += 1
        if ended == "changed":
            counter["ok"] += 1  # as Ansible counts: changed is a kind of ok


def _unseen(host: str) -> HostFailure:
    """Ansible counts a failure that no event told of: still a failure."""
    event = HostEvent(host, "failed", "unknown", None, "Ansible counts a failure here: see the log")
    return HostFailure(event, "")
