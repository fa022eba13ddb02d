"""Machines as QEMU virtual machines: a kernel of their own, no root, by KVM where that works."""

import signal
import threading
import time
import uuid
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from hpcsite.errors import CouldNotRunError, Problem
from hpcsite.image import files, node, tools
from hpcsite.image.node import NodeImage
from hpcsite.lab import console, processes
from hpcsite.lab.backend import Say
from hpcsite.lab.qemu import command, cpio, folder, hub, identity, kvm, qmp, room, trouble
from hpcsite.lab.qemu.folder import FabricFolder, MachineFolder
from hpcsite.lab.qemu.identity import Environment
from hpcsite.lab.qemu.launch import launch
from hpcsite.lab.spec import LabSpec, Machine
from hpcsite.lab.state import LabDirs

# Three emulated machines take about a minute on two idle cores. On a loaded computer that is no
# fault of theirs, and one that hopelessly waits says so on its console.
_BOOT_SECONDS, _EMULATED_BOOT_SECONDS = 90.0, 900.0
_STOP_SECONDS = 90.0
_ASK_AGAIN_SECONDS = 10.0
_QUIT_SECONDS = 5.0
_MONITOR_SECONDS = 10.0
_CONSOLES = 3
_SSH_STARTED = "Started ssh.service"


@dataclass
class Qemu:
    """The qemu backend of one lab."""

    spec: LabSpec
    dirs: LabDirs
    environment: Environment
    images: dict[str, NodeImage] = field(default_factory=dict)
    # The hub's monitor talks to one at a time.
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def boot_seconds(self) -> float:
        """How long a machine may take from its start to a login."""
        known = kvm.known()
        return _BOOT_SECONDS if known and known.kvm else _EMULATED_BOOT_SECONDS

    def prepare(self, machines: Collection[Machine], *, rebuild: bool, say: Say) -> None:
        """Have the node images at hand of which these machines are made.

        Raises:
            CouldNotRunError: one cannot be built.
        """
        hosts = [self.spec.site.hosts[machine.name] for machine in machines]
        found = node.ensure_each(
            self.spec.site, hosts, rebuild=rebuild, lab=self.dirs.root, say=say
        )
        self.images.update(found)
        for image in found.values():
            say(kvm.acceleration(image.kernel).in_words())
            break

    def release(self) -> None:
        """Give up the images that no machine stands on any more."""
        notes = (self._folder(name).image for name in self.dirs.nodes())
        used = {Path(note.read_text(encoding="utf-8")) for note in notes if note.is_file()}
        node.release(self.dirs.root, still_used=used)

    def exists(self, name: str) -> bool:
        """Tell whether the machine was made, completely, and its image is still there."""
        note = self._folder(name).image
        return note.is_file() and NodeImage(Path(note.read_text(encoding="utf-8"))).disk.is_file()

    def running(self, name: str) -> bool:
        """Tell whether the machine is switched on."""
        return folder.process(self._folder(name).mark) is not None

    def make(self, machine: Machine, host_key: Path) -> None:
        """Make the machine anew from its image; it is not started."""
        image = self.images[machine.name]
        made = self._folder(machine.name)
        folder.remove(made)
        made.folder.mkdir(parents=True)
        tools.run(command.disk_command(image.disk, made))
        files.write_atomically(made.fresh, uuid.uuid4().hex)
        self._took_up(machine, host_key)
        files.write_atomically(made.image, str(image.folder))

    def update(self, machine: Machine, host_key: Path) -> bool:
        """Bring an existing machine in line with its description; tell whether it must restart."""
        note = self._folder(machine.name).fingerprint
        wanted = identity.fingerprint(machine, self.environment, host_key)
        if note.is_file() and note.read_text(encoding="utf-8") == wanted:
            return False
        self._took_up(machine, host_key)
        return True

    def require_room(self, machines: Collection[Machine]) -> None:
        """Check that the ports and the memory of the machines that are off are free.

        Raises:
            HpcsiteError: they are not.
        """
        room.require([machine for machine in machines if not self.running(machine.name)])

    def start(self, machine: Machine, host_key: Path) -> None:
        """Switch the machine on and connect it; does nothing to one that runs.

        Raises:
            CouldNotRunError: qemu or the fabric's hub does not start.
        """
        mark = self._folder(machine.name).mark
        if folder.process(mark) is None:
            self._launch(machine, host_key)
        pid = folder.process(mark)
        if pid is None:
            raise CouldNotRunError("the machine ended at once")
        with self.lock:
            hub.connect(self._fabric, machine.name, pid)

    def stop(self, name: str) -> None:
        """Shut the machine down in order, or switch it off if that takes too long."""
        mark = self._folder(name).mark
        deadline = time.monotonic() + _STOP_SECONDS
        while (pid := folder.process(mark)) and time.monotonic() < deadline:
            self._press_power_button(name)
            # One that still boots does not hear it: press again.
            _wait(pid, mark, _ASK_AGAIN_SECONDS)
        if pid is not None:
            processes.end(
                pid, signal.SIGTERM, lambda found: folder.is_marked(found, mark), _QUIT_SECONDS
            )
        folder.kill(mark)
        self._fabric.forget(name)

    def remove(self, name: str) -> None:
        """Switch the machine off at once and remove all of it; works on a half-made one."""
        folder.remove(self._folder(name))
        self._fabric.forget(name)

    def console(self, name: str) -> str:
        """Return the end of what the machine printed on its console since its last start."""
        return console.end(self._folder(name).console)

    def seems_up(self, name: str) -> bool:
        """Tell whether systemd has said on the console that it started the ssh server."""
        return _SSH_STARTED in console.read(self._folder(name).console)

    def stuck(self, name: str) -> str:
        """Tell why a running machine will never come up; empty if nothing says so."""
        return trouble.stuck(self._folder(name).console)

    def warnings(self) -> list[Problem]:
        """Return nothing: how machines run was said."""
        return []

    @property
    def _fabric(self) -> FabricFolder:
        return FabricFolder(self.dirs.fabric)

    def _folder(self, name: str) -> MachineFolder:
        return MachineFolder(self.dirs.machines / name)

    def _took_up(self, machine: Machine, host_key: Path) -> None:
        text = identity.fingerprint(machine, self.environment, host_key)
        files.write_atomically(self._folder(machine.name).fingerprint, text, mode=0o600)

    def _press_power_button(self, name: str) -> None:
        try:
            with qmp.connected(self.dirs.fabric, folder.monitor(name), _MONITOR_SECONDS) as monitor:
                monitor.execute("system_powerdown")
        except CouldNotRunError:  # it has just ended, or hangs; the caller's patience is limited
            return

    def _launch(self, machine: Machine, host_key: Path) -> None:
        made = self._folder(machine.name)
        image = NodeImage(Path(made.image.read_text(encoding="utf-8")))
        self._write_initrd(machine, host_key, image)
        self._fabric.forget(machine.name)
        _rotate(made.console)
        accelerated = kvm.acceleration(image.kernel).kvm
        argv = command.machine_command(machine, made, image.kernel, kvm=accelerated)
        monitor = folder.monitor(machine.name)
        launch(argv, self._fabric, mark=made.mark, monitor=monitor, log=made.log)

    def _write_initrd(self, machine: Machine, host_key: Path, image: NodeImage) -> None:
        made = self._folder(machine.name)
        machine_id = made.fresh.read_text(encoding="utf-8")
        own = identity.archive(machine, self.environment, host_key, machine_id=machine_id)
        # It holds the machine's host key.
        made.initrd.unlink(missing_ok=True)
        made.initrd.touch(mode=0o600)
        made.initrd.write_bytes(cpio.joined(image.initrd.read_bytes(), own))


def _wait(pid: int, mark: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while folder.is_marked(pid, mark) and time.monotonic() < deadline:
        time.sleep(0.1)


def _rotate(path: Path) -> None:
    """Keep the consoles of earlier starts as console.log.1, the youngest, and so on."""
    for number in range(_CONSOLES, 0, -1):
        older = path.with_name(f"{path.name}.{number}")
        younger = path.with_name(f"{path.name}.{number - 1}") if number > 1 else path
        if younger.exists():
            younger.replace(older)
