"""A plan: one frozen record, from which the text, the JSON and the stored file are made."""

from abc import ABC, abstractmethod
from datetime import datetime
from pathlib import Path
from typing import Literal

from hpcsite.deploy.failures import Failure
from hpcsite.deploy.outcome import Status
from hpcsite.errors import ExitCode
from hpcsite.site.model import Frozen


class Item(Frozen, ABC):
    """One change, and the nodes that have it in common: as a node set, and each."""

    nodes: str = ""
    hosts: tuple[str, ...] = ()

    @property
    @abstractmethod
    def label(self) -> str:
        """What changes, in a word or two."""


class FileChange(Item):
    """A file. `diff` is empty where it must not or cannot be shown; `note` then says why."""

    path: str
    change: Literal["created", "content", "attributes", "removed"]
    diff: str = ""
    note: str = ""

    @property
    def label(self) -> str:
        """The file."""
        return self.path


class PackageChange(Item):
    """Packages that are installed, upgraded or removed."""

    action: Literal["install", "upgrade", "remove"]
    packages: tuple[str, ...]

    @property
    def label(self) -> str:
        """The packages."""
        return f"{self.action} {', '.join(self.packages)}"


class DaemonChange(Item):
    """What happens to a daemon, and which files or circumstances demand it."""

    daemon: str
    action: Literal["start", "restart", "reconfigure", "reload", "enable"]
    because: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The action."""
        return f"{self.action} of {self.daemon}"


class NodeNeed(Item):
    """What nodes need that deploy does not do by itself, or a drain that it does."""

    needs: tuple[Literal["drain", "reboot", "resume"], ...]
    because: tuple[str, ...]
    by_deploy: bool = False

    @property
    def label(self) -> str:
        """The need."""
        return " and ".join(self.needs)


class AccountChange(Item):
    """Users or groups of the machines, or accounts, users and limits in Slurm's accounting.

    `what` is the task that keeps them, `names` whom it concerns; of a diff it can be read.
    """

    system: Literal["linux", "slurm"]
    what: str
    names: tuple[str, ...] = ()
    diff: str = ""

    @property
    def label(self) -> str:
        """What changes."""
        return f"{self.what}: {', '.join(self.names)}" if self.names else self.what


class OtherChange(Item):
    """A task that changes something of another kind; `details` are its items or actions."""

    layer: str
    task: str
    details: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The task."""
        return self.task


class Unknown(Item):
    """What a check cannot tell before another step is done."""

    what: str
    until: str

    @property
    def label(self) -> str:
        """What it is."""
        return self.what


class JobAtRisk(Frozen):
    """A running job that what is planned would end, or lose track of."""

    id: str
    user: str
    nodes: str
    because: tuple[str, ...]


class Fingerprint(Frozen):
    """SHA-256 of what a plan rests on, in parts, so that it can be said which part moved."""

    hpcsite: str
    keys: dict[str, str]
    hosts: dict[str, str]
    machines: dict[str, str]


class Summary(Frozen):
    """How many there are of each kind."""

    files: int = 0
    packages: int = 0
    daemons: int = 0
    nodes: int = 0
    jobs_at_risk: int = 0
    accounts: int = 0
    other: int = 0
    unknown: int = 0

    @property
    def empty(self) -> bool:
        """Whether a deploy would change nothing."""
        return not any(self.model_dump().values())


class Plan(Frozen):
    """What a deploy would do; `hpcsite plan --json` prints it, `--out` stores it."""

    schema_version: Literal[1] = 1
    site: str
    inventory: Path
    hpcsite: str
    created: datetime
    duration_s: float
    limit: str | None = None
    tags: tuple[str, ...] = ()
    status: Status
    exit_code: ExitCode
    reason: str = ""
    summary: Summary
    files: tuple[FileChange, ...] = ()
    packages: tuple[PackageChange, ...] = ()
    daemons: tuple[DaemonChange, ...] = ()
    nodes: tuple[NodeNeed, ...] = ()
    jobs_at_risk: tuple[JobAtRisk, ...] = ()
    accounts: tuple[AccountChange, ...] = ()
    other: tuple[OtherChange, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    failures: tuple[Failure, ...] = ()
    fingerprint: Fingerprint
    log: Path

    @property
    def items(self) -> tuple[Item, ...]:
        """Every change, of all kinds."""
        return (
            *self.files,
            *self.packages,
            *self.daemons,
            *self.nodes,
            *self.accounts,
            *self.other,
            *self.unknown,
        )
