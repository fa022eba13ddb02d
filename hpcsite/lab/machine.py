"""One nspawn machine by its folder alone: its files, mounts and processes."""

import signal
import time
from dataclasses import dataclass
from pathlib import Path

from hpcsite.image import mounts, packages
from hpcsite.lab import cgroups, processes

_STOP_SECONDS = 20.0
_KILL_SECONDS = 5.0
_RUNTIME = Path("/run/systemd/nspawn")


@dataclass(frozen=True)
class MachineDir:
    """The folder of one machine and what is in it."""

    folder: Path
    name: str  # under which systemd-nspawn runs it

    @property
    def root(self) -> Path:
        """Where the machine's file system is mounted."""
        return self.folder / "root"

    @property
    def upper(self) -> Path:
        """The machine's own layer over the image."""
        return self.folder / "upper"

    @property
    def downloads(self) -> Path:
        """The machine's own layer over the package cache: what it downloaded."""
        return self.folder / "downloads"

    @property
    def devices(self) -> Path:
        """Device files that are bound into the machine, named by their minor number."""
        return self.folder / "devices"

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
        """The console's output since the last start."""
        return self.folder / "console.log"

    @property
    def argument(self) -> str:
        """The systemd-nspawn argument by which the machine's supervisor is known."""
        return f"--directory={self.root}"


def mount(machine: MachineDir, image_root: Path) -> None:
    """Mount the machine's file system, and over apt's archives the package cache.

    Raises:
        CouldNotRunError: the kernel refuses.
    """
    mounts.mount_overlay(
        lower=image_root, upper=machine.upper, work=machine.folder / "work", point=machine.root
    )
    packages.packages_dir().mkdir(parents=True, exist_ok=True)
    mounts.mount_overlay(
        lower=packages.packages_dir(),
        upper=machine.downloads,
        work=machine.folder / "downloads-work",
        point=machine.root / packages.ARCHIVES,
    )


def running(machine: MachineDir) -> bool:
    """Tell whether the machine is switched on."""
    return processes.supervisor(machine.argument) is not None


def controllers(machine: MachineDir) -> list[str] | None:
    """Return the cgroup v2 controllers that the machine has; None if it does not run."""
    supervisor = processes.supervisor(machine.argument)
    payload = processes.children(supervisor) if supervisor else []
    return cgroups.controllers(payload[0]) if payload else None


def stop(machine: MachineDir) -> None:
    """Shut the machine down in order, or switch it off if that takes too long.

    systemd-nspawn turns SIGTERM into an orderly shutdown of what it runs.
    """
    _end_supervisor(machine, signal.SIGTERM, _STOP_SECONDS)
    switch_off(machine)
    packages.harvest(machine.downloads)


def switch_off(machine: MachineDir) -> None:
    """Kill everything that runs in the machine, and what supervises it."""
    # The machine's own processes first: their supervisor then ends by itself and takes the link
    # with it. One that is just starting has none inside, and is killed.
    processes.kill_inside(machine.upper)
    deadline = time.monotonic() + 0.5
    while running(machine) and time.monotonic() < deadline:
        time.sleep(0.02)
    _end_supervisor(machine, signal.SIGKILL, _KILL_SECONDS)
    processes.kill_inside(machine.upper)


def remove(machine: MachineDir) -> None:
    """Switch the machine off at once and remove all of it; works on a half-made one."""
    switch_off(machine)
    _remove_runtime_files(machine)
    mounts.unmount_below(machine.folder)
    packages.harvest(machine.downloads)
    if machine.folder.exists():
        # Should this be interrupted, nothing must take what is left for a machine.
        machine.image.unlink(missing_ok=True)
        mounts.remove_tree(machine.folder)


def _remove_runtime_files(machine: MachineDir) -> None:
    """Remove what a killed systemd-nspawn leaves below /run; one that ended did so itself."""
    if mounts.is_mounted(machine.root):
        root = machine.root.stat()
        (_RUNTIME / "locks" / f"inode-{root.st_dev}:{root.st_ino}").unlink(missing_ok=True)
    for kind in ("propagate", "unix-export"):
        folder = _RUNTIME / kind / machine.name
        mounts.unmount_below(folder)
        if folder.is_dir():
            folder.rmdir()


def _end_supervisor(machine: MachineDir, number: int, seconds: float) -> None:
    pid = processes.supervisor(machine.argument)
    if pid is not None:
        processes.end(
            pid,
            number,
            lambda found: processes.is_supervisor(found, machine.argument),
            seconds,
        )
