"""What a lab is doing right now."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

from hpcsite.lab import cgroups, host, machine, sshwait, state
from hpcsite.lab.spec import LabSpec, Machine

State = Literal["running", "stopped", "absent"]


@dataclass(frozen=True)
class MachineStatus:
    """One machine, now."""

    name: str
    address: str
    state: State
    ssh: bool


@dataclass(frozen=True)
class LabStatus:
    """A lab, now."""

    name: str
    inventory: str
    network: str
    machines: tuple[MachineStatus, ...]
    cgroup_controllers: tuple[str, ...]
    cgroup: str

    @property
    def ok(self) -> bool:
        """Whether every machine runs and can be logged in to."""
        return all(each.state == "running" and each.ssh for each in self.machines)


def status(spec: LabSpec) -> LabStatus:
    """Look at a lab; changes nothing and waits for nobody.

    Raises:
        CouldNotRunError: not root, whose labs these are.
    """
    host.require_root()
    dirs = state.lab_dirs(spec.name, spec.inventory)
    with ThreadPoolExecutor(len(spec.machines) or 1) as pool:
        found = tuple(pool.map(lambda node: _machine_status(dirs, node), spec.machines))
    controllers = _controllers(dirs, found)
    return LabStatus(
        name=spec.name,
        inventory=str(spec.inventory),
        network=str(spec.network),
        machines=found,
        cgroup_controllers=tuple(controllers),
        cgroup=cgroups.in_words(controllers, v1=cgroups.host_runs_v1()),
    )


def _machine_status(dirs: state.LabDirs, node: Machine) -> MachineStatus:
    folder = dirs.machine(node.name)
    now: State = "absent"
    if machine.running(folder):
        now = "running"
    elif folder.image.is_file():
        now = "stopped"
    address = str(node.address)
    ssh = now == "running" and sshwait.answers(dirs.lab_files, address)
    return MachineStatus(node.name, address, now, ssh)


def _controllers(dirs: state.LabDirs, found: tuple[MachineStatus, ...]) -> list[str]:
    """Return what a running machine has; where none runs, what this process has."""
    for each in found:
        measured = machine.controllers(dirs.machine(each.name))
        if measured is not None:
            return measured
    return cgroups.controllers(os.getpid())
