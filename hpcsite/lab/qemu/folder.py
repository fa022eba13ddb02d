"""One virtual machine by its folder alone, and the folder of the lab's fabric: files, processes."""

import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

from hpcsite.lab import processes

PROGRAM = "qemu-system-"
_KILL_SECONDS = 10.0


@dataclass(frozen=True)
class MachineFolder:
    """The folder of one virtual machine."""

    folder: Path

    @property
    def disk(self) -> Path:
        """The machine's own layer over the image's disk."""
        return self.folder / "disk.qcow2"

    @property
    def initrd(self) -> Path:
        """The image's initrd and, appended, the machine's own files."""
        return self.folder / "initrd"

    @property
    def fresh(self) -> Path:
        """The machine's id, which it takes up at its first boot only."""
        return self.folder / "machine-id"

    @property
    def image(self) -> Path:
        """Holds the path of the machine's image; written last when a machine is made."""
        return self.folder / "image"

    @property
    def fingerprint(self) -> Path:
        """Holds what the machine took up at its last start."""
        return self.folder / "fingerprint"

    @property
    def console(self) -> Path:
        """The console's output since the last start; earlier ones lie beside it."""
        return self.folder / "console.log"

    @property
    def log(self) -> Path:
        """What qemu itself has to say."""
        return self.folder / "qemu.log"

    @property
    def mark(self) -> str:
        """The argument by which the machine's process is known; qemu writes its pid there."""
        return str(self.folder / "pid")


@dataclass(frozen=True)
class FabricFolder:
    """The folder of a lab's fabric: its sockets, by names that are short in any state folder.

    A socket's path has at most 107 characters (unix(7)), so that programs work inside of this
    folder and call its sockets by their names alone.
    """

    folder: Path

    @property
    def mark(self) -> str:
        """The argument by which the hub's process is known."""
        return str(self.folder / "hub.pid")

    def forget(self, node: str) -> None:
        """Remove the sockets of a machine that is off."""
        for name in (link(node), monitor(node)):
            (self.folder / name).unlink(missing_ok=True)


def link(node: str) -> str:
    """Return the name of the socket by which a machine is connected to the fabric."""
    return f"{node}.link"


def monitor(node: str) -> str:
    """Return the name of the socket by which a machine is controlled."""
    return f"{node}.monitor"


def is_marked(pid: int, mark: str) -> bool:
    """Tell whether a process is a qemu with this argument."""
    argv = processes.command_line(pid)
    return bool(argv) and Path(argv[0]).name.startswith(PROGRAM) and mark in argv


def process(mark: str) -> int | None:
    """Return the qemu process with this argument, if there is one."""
    return next(iter(processes.find(lambda pid: is_marked(pid, mark))), None)


def kill(mark: str) -> None:
    """Kill every qemu process with this argument, and wait until they are gone."""
    # While one starts, there are two of them.
    while pids := processes.find(lambda pid: is_marked(pid, mark)):
        for pid in pids:
            processes.end(pid, signal.SIGKILL, lambda found: is_marked(found, mark), _KILL_SECONDS)


def remove(machine: MachineFolder) -> None:
    """Switch the machine off at once and remove all of it; works on a half-made one."""
    kill(machine.mark)
    if machine.folder.exists():
        # Should this be interrupted, nothing must take what is left for a machine.
        machine.image.unlink(missing_ok=True)
        shutil.rmtree(machine.folder)
