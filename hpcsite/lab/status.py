"""What a lab is doing right now."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

from hpcsite.lab import sshwait, state
from hpcsite.lab.backend import Kind, Nature
from hpcsite.lab.kinds import KINDS
from hpcsite.lab.spec import LabSpec, Machine

State = Literal["running", "stopped", "absent"]


@dataclass(frozen=True)
class MachineStatus:
    """One machine, now."""

    name: str
    address: str
    state: State
    ssh: bool
    trouble: str = ""  # why it does not answer, if something says so


@dataclass(frozen=True)
class LabStatus:
    """A lab, now."""

    name: str
    inventory: str
    backend: str
    network: str
    machines: tuple[MachineStatus, ...]
    nature: Nature

    @property
    def ok(self) -> bool:
        """Whether every machine runs, is connected and can be logged in to."""
        machines = all(each.state == "running" and each.ssh for each in self.machines)
        return machines and self.nature.fabric


def status(spec: LabSpec) -> LabStatus:
    """Look at a lab; changes nothing and waits for nobody.

    Raises:
        CouldNotRunError: labs of this kind are not this user's.
    """
    kind = KINDS[spec.settings.backend]
    kind.require()
    dirs = state.lab_dirs(spec.name, spec.inventory)
    with ThreadPoolExecutor(len(spec.machines) or 1) as pool:
        found = tuple(pool.map(lambda node: _machine_status(kind, dirs, node), spec.machines))
    return LabStatus(
        name=spec.name,
        inventory=str(spec.inventory),
        backend=spec.settings.backend,
        network=str(spec.network),
        machines=found,
        nature=kind.nature(dirs, [each.name for each in found if each.state == "running"]),
    )


def _machine_status(kind: Kind, dirs: state.LabDirs, node: Machine) -> MachineStatus:
    now: State = "absent"
    if kind.running(dirs, node.name):
        now = "running"
    elif kind.exists(dirs, node.name):
        now = "stopped"
    ssh = now == "running" and sshwait.answers(dirs.lab_files, node.ssh)
    trouble = kind.trouble(dirs, node.name) if now == "running" and not ssh else ""
    return MachineStatus(node.name, str(node.address), now, ssh, trouble)
