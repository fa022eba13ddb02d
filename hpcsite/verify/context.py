"""What a check has at hand: the site, the cluster, commands and jobs, each recorded."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

from hpcsite.site.model import Host, Site
from hpcsite.verify.cluster import Cluster, Target
from hpcsite.verify.evidence import Evidence
from hpcsite.verify.owner import Owner, lasting
from hpcsite.verify.transport import Answer, InterruptedRunError, Transport

T = TypeVar("T")
COMMAND_TIMEOUT_S = 30.0
JOB_PREFIX = "hpcsite-"
# slurmctld's share of time for each of many jobs.
SCHEDULED_S = 0.05


@dataclass(frozen=True)
class Options:
    """How a run submits its jobs. None: Slurm's default for the user."""

    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    reservation: str | None = None
    wait_s: float = 30.0

    def flags(self, partition: str | None) -> list[str]:
        """Options of sbatch and srun for these, in the partition given."""
        chosen = {
            "partition": self.partition or partition,
            "account": self.account,
            "qos": self.qos,
            "reservation": self.reservation,
        }
        return [f"--{name}={value}" for name, value in chosen.items() if value]


@dataclass
class Core:
    """What all checks of a run share.

    `leftovers` are folders on the submit host that are removed when the run ends, however it ends.
    `start` holds what Slurm said of its nodes when the run began. `origin` and `by` tell whose the
    run is; see `owner`.
    """

    site: Site
    transport: Transport
    host: Host
    user: str
    options: Options
    run_id: str
    folder: Path
    origin: str = "-"
    by: str = "-"
    stop: threading.Event = field(default_factory=threading.Event)
    locks: dict[str, threading.Lock] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    leftovers: list[str] = field(default_factory=list)
    start: Evidence | None = None

    @property
    def job_name(self) -> str:
        """Name of every job of this run."""
        return f"{JOB_PREFIX}{self.run_id}"


class Context:
    """One check's view of a run. What it runs is recorded as its evidence."""

    def __init__(self, core: Core, cluster: Cluster, evidence: Evidence) -> None:
        self.core = core
        self.cluster = cluster
        self.evidence = evidence

    @property
    def site(self) -> Site:
        """The site that is verified."""
        return self.core.site

    @property
    def options(self) -> Options:
        """How jobs are submitted."""
        return self.core.options

    def user(self, argv: Sequence[str], name: str, timeout_s: float = COMMAND_TIMEOUT_S) -> Answer:
        """Run a command as the ordinary user on the submit host, and keep its answer."""
        answer = self.core.transport.run(
            self.core.host, argv, user=self.core.user, timeout_s=timeout_s
        )
        self.evidence.record(answer, name)
        return answer

    def admin(
        self, host: Host, argv: Sequence[str], name: str, timeout_s: float = COMMAND_TIMEOUT_S
    ) -> Answer:
        """Run a command on any host as the inventory's user, and keep its answer."""
        answer = self.core.transport.run(host, argv, user=None, timeout_s=timeout_s)
        self.evidence.record(answer, name)
        return answer

    def pause(self, seconds: float) -> None:
        """Wait; raises `InterruptedRunError` as soon as the run is interrupted."""
        if self.core.stop.wait(seconds):
            raise InterruptedRunError

    def shared(self, key: str, make: Callable[["Context"], T]) -> T:
        """Return a value that several checks use: made once, its evidence counted for each of them.

        When making it raises, each check that asks tries and raises again.
        """
        with self.core.lock:
            lock = self.core.locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self.core.values:
                evidence = Evidence(self.core.folder, f"shared.{key}")
                value = make(Context(self.core, self.cluster, evidence))
                self.core.values[key] = (value, evidence)
            value, evidence = self.core.values[key]
        self.evidence.add(evidence)
        return cast("T", value)

    def job_flags(self, target: Target | None, *, minutes: int, memory_mib: int = 64) -> list[str]:
        """Options that every job of a run has, for sbatch and srun alike.

        Memory is asked for by number: a cluster without a default gives a job the whole node.
        """
        flags = [
            f"--job-name={self.core.job_name}",
            f"--time={minutes}",
            f"--mem={memory_mib}M",
            f"--comment={self._owner(minutes).comment}",
            *self.options.flags(target.partition if target else None),
        ]
        return flags + ([f"--nodelist={target.name}"] if target else [])

    def patience(self, count: int = 1) -> float:
        """Seconds that so many jobs together may take to be scheduled."""
        return self.options.wait_s + count * SCHEDULED_S

    def _owner(self, minutes: int) -> Owner:
        core = self.core
        return Owner(core.run_id, core.origin, core.by, lasting(self.options.wait_s, minutes))
