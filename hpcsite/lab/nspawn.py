"""Machines as systemd-nspawn containers: native speed, the host's kernel."""

import os
import platform
import stat
import subprocess
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from hpcsite.errors import CouldNotRunError, Problem
from hpcsite.image import files, mounts, roots, tools
from hpcsite.image.aptconf import HostApt
from hpcsite.image.recipe import Recipe
from hpcsite.image.roots import Image
from hpcsite.lab import console, identity, machine, names, network, processes
from hpcsite.lab.backend import Say
from hpcsite.lab.identity import Environment
from hpcsite.lab.machine import MachineDir
from hpcsite.lab.spec import Machine
from hpcsite.lab.state import LabDirs
from hpcsite.site.model import Lab

TOOLS = ("systemd-nspawn", "ip", "nft", "mount", "umount", "ssh", "ssh-keygen")
# NVIDIA's character devices (Documentation/admin-guide/devices.txt).
_NVIDIA_MAJOR = 195
_LINK_SECONDS = 20.0
_BOOT_SECONDS = 60.0
# Python's name of a machine type → Debian's.
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "ppc64le": "ppc64el"}
# The host may run cgroup v1; machines are given v2 all the same, as Debian 13 knows nothing else.
_UNIFIED = ("SYSTEMD_NSPAWN_UNIFIED_HIERARCHY", "1")


def nspawn_command(node: Machine, bridge: str, folder: MachineDir) -> list[str]:
    """Return the command that boots a machine."""
    devices = [
        f"--bind={folder.devices}/{number}:{path}" for number, path in enumerate(node.gpu_devices)
    ]
    return [
        *("systemd-nspawn", "--quiet", "--boot"),
        # No machined, no unit of its own: the lab works the same without systemd on the host.
        *("--register=no", "--keep-unit"),
        f"--machine={folder.name}",
        f"--hostname={node.name}",
        folder.argument,
        f"--network-bridge={bridge}",
        "--resolv-conf=off",
        # A lab's data need not survive a power cut of the host.
        "--suppress-sync=yes",
        *devices,
    ]


def unit_command(folder: MachineDir, unit: str, argv: list[str]) -> list[str]:
    """Return the command that runs a machine in a transient systemd unit of its own.

    `Delegate=` hands the machine's systemd the cgroup v2 controllers. There is no `DeviceAllow=`,
    on purpose: without one a unit may use every device, and what a machine sees is decided by
    what is bound into it.
    """
    return [
        *("systemd-run", "--quiet", "--collect", f"--unit={unit}", "--service-type=exec"),
        f"--description=hpcsite lab machine {folder.name}",
        *("--property=Delegate=yes", "--property=KillMode=mixed"),
        f"--setenv={'='.join(_UNIFIED)}",
        *(f"--property=StandardOutput=append:{folder.console}", "--property=StandardError=inherit"),
        "--",
        *argv,
    ]


@dataclass
class Nspawn:
    """The nspawn backend of one lab."""

    network: network.Network
    dirs: LabDirs
    environment: Environment
    apt: HostApt
    settings: Lab
    image: Image | None = None

    @property
    def boot_seconds(self) -> float:
        """How long a machine may take from its start to a login."""
        return _BOOT_SECONDS

    def prepare(self, machines: Collection[Machine], *, rebuild: bool, say: Say) -> None:
        """Have the one image at hand of which all machines are made.

        Raises:
            CouldNotRunError: it cannot be built.
        """
        found = roots.ensure(self._recipe(), proxy=self.apt.proxy, rebuild=rebuild, say=say)
        roots.claim(found, self.dirs.root)
        if found.age_days > roots.OLD_DAYS:
            say(
                f"the image's package lists are {found.age_days} days old; if an install does not "
                f"find its packages: hpcsite lab up --rebuild, then reset"
            )
        self.image = found

    def release(self) -> None:
        """Give up the images that no machine stands on any more."""
        notes = (self._folder(node).image for node in self.dirs.nodes())
        used = {Path(note.read_text(encoding="utf-8")) for note in notes if note.is_file()}
        roots.release(self.dirs.root, still_used=used)

    def exists(self, node: str) -> bool:
        """Tell whether the machine was made, completely, and its image is still there."""
        note = self._folder(node).image
        return note.is_file() and Path(note.read_text(encoding="utf-8")).is_dir()

    def running(self, node: str) -> bool:
        """Tell whether the machine is switched on."""
        return machine.running(self._folder(node))

    def make(self, node: Machine, host_key: Path) -> None:
        """Make the machine anew from its image; it is not started."""
        assert self.image is not None  # noqa: S101 - `prepare` comes first
        folder = self._folder(node.name)
        machine.remove(folder)
        folder.folder.mkdir(parents=True)
        machine.mount(folder, self.image.root)
        identity.write_all(folder.root, node, self.environment, host_key)
        self._took_up(node, host_key)
        files.write_atomically(folder.image, str(self.image.root))

    def update(self, node: Machine, host_key: Path) -> bool:
        """Bring an existing machine in line with its description; tell whether it must restart."""
        folder = self._folder(node.name)
        machine.mount(folder, Path(folder.image.read_text(encoding="utf-8")))
        identity.refresh_resolver(folder.root, self.environment)
        wanted = identity.fingerprint(node, self.environment, host_key)
        if folder.fingerprint.is_file() and folder.fingerprint.read_text("utf-8") == wanted:
            return False
        identity.write_lasting(folder.root, node, self.environment, host_key)
        self._took_up(node, host_key)
        return True

    def require_room(self, machines: Collection[Machine]) -> None:
        """Do nothing: these machines take no more than what runs in them."""

    def start(self, node: Machine, host_key: Path) -> None:
        """Switch the machine on and connect it; does nothing to one that runs.

        Raises:
            CouldNotRunError: it ended at once; carries the end of its console.
        """
        if not self.running(node.name):
            folder = self._folder(node.name)
            # What lost its supervisor still holds the machine's name and file system.
            processes.kill_inside(folder.upper)
            _make_devices(folder.devices, len(node.gpu_devices))
            self._launch(node, folder)
        self._connect(node.name)

    def stop(self, node: str) -> None:
        """Shut the machine down in order, or switch it off if that takes too long."""
        machine.stop(self._folder(node))

    def remove(self, node: str) -> None:
        """Switch the machine off at once and remove all of it; works on a half-made one."""
        machine.remove(self._folder(node))

    def console(self, node: str) -> str:
        """Return the end of what the machine printed on its console since its last start."""
        return console.end(self._folder(node).console)

    def seems_up(self, node: str) -> bool:
        """Tell that a login may be tried at any time: it costs nothing."""
        return True

    def stuck(self, node: str) -> str:
        """Return nothing: a container that cannot boot ends."""
        return ""

    def warnings(self) -> list[Problem]:
        """Return what the lab works with, but its user should know."""
        firewall = network.forwarding_problem(self.network.name)
        return [firewall] if firewall else []

    def _recipe(self) -> Recipe:
        machine_type = platform.machine()
        return Recipe(
            release=self.settings.release,
            architecture=_ARCHITECTURES.get(machine_type, machine_type),
            packages=self.settings.packages,
            sources=self.apt.sources(self.settings.release),
            apt_options=self.apt.options,
        )

    def _folder(self, node: str) -> MachineDir:
        return self.dirs.machine(node)

    def _took_up(self, node: Machine, host_key: Path) -> None:
        text = identity.fingerprint(node, self.environment, host_key)
        files.write_atomically(self._folder(node.name).fingerprint, text, mode=0o600)

    def _launch(self, node: Machine, folder: MachineDir) -> None:
        argv = nspawn_command(node, self.network.bridge, folder)
        folder.console.unlink(missing_ok=True)
        if Path("/run/systemd/system").is_dir():
            unit = names.unit(self.network.name, node.name)
            tools.run(unit_command(folder, unit, argv))
            return
        env = {**os.environ, "PATH": tools.search_path(), _UNIFIED[0]: _UNIFIED[1]}
        with folder.console.open("wb") as console:
            started = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                env=env,
                cwd="/",
                start_new_session=True,
            )
        # Popen may return while the kernel still loads the program, which is unknown until then.
        while started.poll() is None and not processes.is_supervisor(started.pid, folder.argument):
            time.sleep(0.01)

    def _connect(self, node: str) -> None:
        """Wait for the machine's link and put it on the bridge, where a mended one lacks it."""
        interface = names.machine_interface(self.network.name, node)
        deadline = time.monotonic() + _LINK_SECONDS
        while not network.attach(self.network, interface):
            if time.monotonic() > deadline or not self.running(node):
                raise CouldNotRunError(
                    f"the machine did not start; the end of its console:\n{self.console(node)}"
                )
            time.sleep(0.05)


def _make_devices(folder: Path, count: int) -> None:
    # A file system of their own: the one below may be mounted `nodev`.
    mounts.mount_tmpfs(folder)
    for number in range(count):
        path = folder / str(number)
        path.unlink(missing_ok=True)
        os.mknod(path, stat.S_IFCHR, os.makedev(_NVIDIA_MAJOR, number))
        path.chmod(0o666)
