"""Labs of virtual machines as such: what they need on this computer, and their end."""

import platform
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

from hpcsite.errors import CouldNotRunError
from hpcsite.image import aptconf, node, tools
from hpcsite.lab import processes
from hpcsite.lab.backend import Nature
from hpcsite.lab.qemu import folder, hub, kvm, room, trouble
from hpcsite.lab.qemu.backend import Qemu
from hpcsite.lab.qemu.command import MANAGEMENT_GATEWAY, SYSTEM
from hpcsite.lab.qemu.folder import FabricFolder, MachineFolder
from hpcsite.lab.qemu.identity import Environment
from hpcsite.lab.spec import LabSpec
from hpcsite.lab.state import LabDirs

_MACHINE = "x86_64"
_TOOLS = (SYSTEM, "qemu-img", "ssh", "ssh-keygen")


class QemuKind:
    """The qemu backend as such."""

    def require(self) -> None:
        """Check that this computer is of the right kind and has the tools. Root is not needed.

        Raises:
            CouldNotRunError: it is not, or has not.
        """
        if platform.machine() != _MACHINE:
            raise CouldNotRunError(
                f"virtual machines are made on {_MACHINE} only; this computer is "
                f"{platform.machine()}",
                hint="`backend: nspawn` in site_lab works here",
            )
        tools.require(_TOOLS)

    def require_own(self, name: str, dirs: LabDirs) -> None:
        """Do nothing: all that carries the lab's name lies in its own folders."""

    def require_free(self, spec: LabSpec, dirs: LabDirs) -> None:
        """Check that ports and memory of the machines that are off are free.

        Raises:
            HpcsiteError: they are not.
        """
        room.require([each for each in spec.machines if not self.running(dirs, each.name)])

    def open(self, spec: LabSpec, dirs: LabDirs, login_key: str) -> Qemu:
        """Make the folder of the fabric; the rest comes with the machines."""
        dirs.fabric.mkdir(mode=0o700, parents=True, exist_ok=True)
        environment = Environment(
            network=spec.network,
            proxy=aptconf.read_host_apt().machine_proxy(MANAGEMENT_GATEWAY),
            login_key=login_key,
        )
        return Qemu(spec, dirs, environment)

    def tear_down(self, name: str, dirs: LabDirs) -> None:
        """Remove the machines and the fabric."""
        nodes = dirs.nodes()
        with ThreadPoolExecutor(len(nodes) or 1) as pool:
            list(pool.map(lambda each: folder.remove(MachineFolder(dirs.machines / each)), nodes))
        hub.end(FabricFolder(dirs.fabric))
        node.release(dirs.root)

    def exists(self, dirs: LabDirs, name: str) -> bool:
        """Tell whether a machine was made, completely."""
        return MachineFolder(dirs.machines / name).image.is_file()

    def running(self, dirs: LabDirs, name: str) -> bool:
        """Tell whether a machine is switched on."""
        return folder.process(MachineFolder(dirs.machines / name).mark) is not None

    def trouble(self, dirs: LabDirs, name: str) -> str:
        """Tell why a machine that runs may not answer, by its console; empty if nothing says so."""
        return trouble.trouble(MachineFolder(dirs.machines / name).console)

    def nature(self, dirs: LabDirs, running: Collection[str]) -> Nature:
        """Tell how the machines run, by KVM or by emulation, and whether they are connected."""
        known = kvm.known()
        used = _used(dirs, running)
        words = known.in_words() if known else "whether KVM works here is tried at the first start"
        if used is not None and (known is None or known.kvm != used):
            words = f"virtual machines run by {'KVM' if used else 'emulation, which is slow'}"
        connected = not running or hub.running(FabricFolder(dirs.fabric))
        if not connected:
            words += "\nthe fabric is down: machines do not reach each other (lab up mends it)"
        fallback = known.kvm if known else None
        return Nature(words=words, kvm=fallback if used is None else used, fabric=connected)


def _used(dirs: LabDirs, running: Collection[str]) -> bool | None:
    """Tell by what running machines do run: True for KVM; None where nothing runs."""
    for name in running:
        pid = folder.process(MachineFolder(dirs.machines / name).mark)
        argv = processes.command_line(pid) if pid else []
        if argv:
            return "kvm" in argv
    return None
