"""What a command needs to work on a lab: its folders, keys, environment and backend."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from hpcsite.errors import CouldNotRunError, FailedError, HpcsiteError, Problem
from hpcsite.image import aptconf, disk
from hpcsite.lab import host, network, sshkeys, state
from hpcsite.lab.backend import Backend
from hpcsite.lab.identity import Environment
from hpcsite.lab.nspawn import Nspawn
from hpcsite.lab.spec import LabSpec, Machine
from hpcsite.lab.sshwait import Waiter

_BOOT_SECONDS = 60.0
_WORKERS = 8


class MachinesError(FailedError):
    """Something failed on one or more machines; carries a problem for each."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(problem.message for problem in problems))
        self._problems = problems

    @property
    def problems(self) -> list[Problem]:
        """One for each machine, in inventory order."""
        return self._problems


@dataclass(frozen=True)
class Session:
    """A lab, locked and checked, with everything that its machines have in common in place."""

    spec: LabSpec
    dirs: state.LabDirs
    backend: Backend
    apt: aptconf.HostApt
    host_keys: dict[str, Path]
    stopped: threading.Event = field(default_factory=threading.Event)

    def each(self, machines: Iterable[Machine], action: Callable[[Machine], None]) -> None:
        """Do something with several machines at once.

        Raises:
            MachinesError: it failed with some; says with which and why. The others are done.
        """
        with ThreadPoolExecutor(_WORKERS) as pool:
            futures = {machine.name: pool.submit(action, machine) for machine in machines}
            try:
                failures = [
                    problem
                    for name, future in futures.items()
                    for problem in _problems(name, future)
                ]
            except KeyboardInterrupt:
                self.stopped.set()
                pool.shutdown(cancel_futures=True)
                raise
        if failures:
            raise MachinesError(failures)

    def boot(self, machine: Machine) -> None:
        """Switch a machine on and wait until root can log in.

        Raises:
            CouldNotRunError: it does not come up; carries the end of its console.
        """
        self.backend.start(machine)
        waiter = Waiter(self.dirs.lab_files, _BOOT_SECONDS, self.stopped)
        if waiter.wait(str(machine.address), lambda: self.backend.running(machine.name)):
            return
        if self.stopped.is_set():
            return
        what = (
            f"no login by ssh at {machine.address} after {_BOOT_SECONDS:.0f} s"
            if self.backend.running(machine.name)
            else "the machine ended while it booted"
        )
        raise CouldNotRunError(
            f"{what}; the end of its console:\n{self.backend.console(machine.name)}",
            hint="hpcsite lab up mends what it can; hpcsite lab reset replaces the machine",
        )


def open_session(spec: LabSpec) -> Session:
    """Make, or mend, what the machines of a lab have in common: keys and network.

    Only under the lab's lock.

    Raises:
        CouldNotRunError: the network collides with another, or a tool fails.
    """
    dirs = state.lab_dirs(spec.name, spec.inventory)
    net = network.Network(spec.name, spec.network, dirs.root, host.uplink_mtu())
    network.ensure(net)
    login_key = sshkeys.ensure_login_key(dirs.lab_files, spec.name)
    public_keys = {
        machine.name: sshkeys.ensure_host_key(dirs.host_keys, machine.name)
        for machine in spec.machines
    }
    sshkeys.write_known_hosts(
        dirs.lab_files,
        (
            (machine.name, str(machine.address), public_keys[machine.name])
            for machine in spec.machines
        ),
    )
    sshkeys.give_to_owner(dirs.lab_files)
    apt = aptconf.read_host_apt()
    environment = Environment(
        network=spec.network,
        mtu=net.mtu,
        resolvers=tuple(host.resolvers()),
        proxy=apt.machine_proxy(str(net.gateway)),
        login_key=login_key,
    )
    host_keys = {name: dirs.host_keys / name / sshkeys.HOST_KEY for name in public_keys}
    return Session(spec, dirs, Nspawn(net, dirs, environment), apt, host_keys)


def _problems(name: str, future: "Future[None]") -> list[Problem]:
    try:
        with disk.disk_errors():
            future.result()
    except HpcsiteError as error:
        return [replace(each, message=f"{name}: {each.message}") for each in error.problems]
    return []
