"""What a command needs to work on a lab: its folders, keys, environment and backend."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from hpcsite.errors import CouldNotRunError, FailedError, HpcsiteError, Problem
from hpcsite.image import disk
from hpcsite.lab import sshkeys, state
from hpcsite.lab.backend import Backend
from hpcsite.lab.kinds import KINDS
from hpcsite.lab.spec import LabSpec, Machine
from hpcsite.lab.sshwait import Waiter

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
    host_keys: dict[str, Path]
    stopped: threading.Event = field(default_factory=threading.Event)

    def each(self, machines: Iterable[Machine], action: Callable[[Machine], None]) -> None:
        """Do something with several machines at once.

        Raises:
            MachinesError: it failed with some; says with which and why. The others are done.
            CouldNotRunError: the lab is about to be removed.
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
        if failures and self.dirs.ending.exists():
            raise CouldNotRunError(
                "given up: another command is removing the lab",
                hint=f"when it is done: hpcsite lab up {self.spec.inventory}",
            )
        if failures:
            raise MachinesError(failures)

    def boot(self, machine: Machine) -> None:
        """Switch a machine on and wait until root can log in.

        Raises:
            CouldNotRunError: it does not come up; carries the end of its console.
        """
        seconds = self.backend.boot_seconds
        self.backend.start(machine, self.host_keys[machine.name])
        waiter = Waiter(self.dirs.lab_files, seconds, self.stopped)
        if waiter.wait(
            machine.ssh,
            alive=lambda: self._may_come_up(machine),
            ready=lambda: self.backend.seems_up(machine.name),
        ):
            return
        if self.stopped.is_set():
            return
        if self.dirs.ending.exists():
            raise CouldNotRunError("not waited for")
        what = f"no login by ssh at {machine.ssh} after {seconds:.0f} s"
        if not self.backend.running(machine.name):
            what = "the machine ended while it booted"
        elif stuck := self.backend.stuck(machine.name):
            what = f"the machine does not come up: {stuck}"
        raise CouldNotRunError(
            f"{what}; the end of its console:\n{self.backend.console(machine.name)}",
            hint="hpcsite lab up mends what it can; hpcsite lab reset replaces the machine",
        )

    def _may_come_up(self, machine: Machine) -> bool:
        return (
            not self.dirs.ending.exists()
            and self.backend.running(machine.name)
            and not self.backend.stuck(machine.name)
        )


def open_session(spec: LabSpec) -> Session:
    """Make, or mend, what the machines of a lab have in common: keys and network.

    Only under the lab's lock.

    Raises:
        CouldNotRunError: the network collides with another, or a tool fails.
    """
    dirs = state.lab_dirs(spec.name, spec.inventory)
    # Left by a `lab down` that was killed.
    dirs.ending.unlink(missing_ok=True)
    login_key = sshkeys.ensure_login_key(dirs.lab_files, spec.name)
    public_keys = {
        machine.name: sshkeys.ensure_host_key(dirs.host_keys, machine.name)
        for machine in spec.machines
    }
    sshkeys.write_known_hosts(
        dirs.lab_files,
        (
            (machine.name, machine.ssh.known_host, public_keys[machine.name])
            for machine in spec.machines
        ),
    )
    sshkeys.give_to_owner(dirs.lab_files)
    host_keys = {name: dirs.host_keys / name / sshkeys.HOST_KEY for name in public_keys}
    backend = KINDS[spec.settings.backend].open(spec, dirs, login_key)
    return Session(spec, dirs, backend, host_keys)


def _problems(name: str, future: "Future[None]") -> list[Problem]:
    try:
        with disk.disk_errors():
            future.result()
    except HpcsiteError as error:
        return [replace(each, message=f"{name}: {each.message}") for each in error.problems]
    return []
