"""What Slurm's files are made of besides the site's keys: hosts, folders, nodes."""

from collections.abc import Sequence
from dataclasses import dataclass

from hpcsite.slurm.hardware import Machine


@dataclass(frozen=True)
class Paths:
    """Folders that slurm.conf names; distributions differ."""

    state_dir: str
    spool_dir: str


@dataclass(frozen=True)
class Server:
    """A host that slurmctld runs on, by the name that it gives itself."""

    name: str
    address: str


@dataclass(frozen=True)
class Controller:
    """The hosts that slurm.conf names besides the nodes; backups in the order of taking over."""

    name: str
    address: str
    database_host: str | None = None
    backups: tuple[Server, ...] = ()

    @property
    def servers(self) -> Sequence[Server]:
        """The primary controller, then its backups."""
        return (Server(self.name, self.address), *self.backups)


@dataclass(frozen=True)
class Node:
    """A node that has a line in slurm.conf."""

    name: str
    address: str
    group: str
    machine: Machine
