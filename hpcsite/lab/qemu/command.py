"""The qemu commands of a lab: pure."""

import platform
from ipaddress import IPv4Address
from pathlib import Path

from hpcsite.lab.qemu import folder
from hpcsite.lab.qemu.folder import FabricFolder, MachineFolder
from hpcsite.lab.spec import Machine

# Machines are of the computer's own kind: others would make no sense of the node images.
SYSTEM = f"qemu-system-{platform.machine()}"
# In this address a machine finds the computer, and qemu's own name server
# (qemu-doc, "Using the user mode network stack").
MANAGEMENT_ADDRESS, MANAGEMENT_GATEWAY = "10.0.2.15", "10.0.2.2"
MANAGEMENT_RESOLVER = "10.0.2.3"
_SSH = 22
# Translated code of an emulated machine is kept in a buffer of this size.
TRANSLATION_MIB = 512
# Old and plain: of all that the emulation can do (`max`), AVX and 5-level page tables are the least
# tried, and guests broke under it (an interrupt that returned to address 0).
_EMULATED_CPU = "Nehalem"

_BARE = ("-nodefaults", "-no-user-config", "-display", "none")

KERNEL = (
    "root=/dev/vda rw console=ttyS0",
    # The console shows how far a boot came, and not each device of the kernel's.
    "loglevel=4 systemd.show_status=true TERM=dumb",
    # Interfaces are named by the machine's own files, by their addresses.
    "net.ifnames=0",
    # Nothing in a lab is worth the price of these, which is high under emulation.
    "mitigations=off",
    # Nobody can log in on a console that is a file.
    "systemd.getty_auto=no",
    # The image is complete: what is to be made anew after an update is in it.
    "systemd.condition_needs_update=no",
)


# What systemd grants a service or device by default, 90 s, is meant for faster machines.
_PATIENCE = "systemd.default_timeout_start_sec=300 systemd.default_device_timeout_sec=300"


def management_mac(address: IPv4Address) -> str:
    """Return the hardware address of a machine's management interface."""
    return _mac(0x56, address)


def fabric_mac(address: IPv4Address) -> str:
    """Return the hardware address of a machine's fabric interface."""
    return _mac(0x55, address)


def _mac(second: int, address: IPv4Address) -> str:
    # 0x52 has the bit of addresses that no manufacturer gave (IEEE 802, U/L).
    return ":".join(f"{byte:02x}" for byte in (0x52, second, *address.packed))


def machine_command(node: Machine, machine: MachineFolder, kernel: Path, *, kvm: bool) -> list[str]:
    """Return the command that boots a machine; to be run in the fabric's folder."""
    # One thread for all CPUs of a machine: with one each, a CPU may meet the breakpoint by which a
    # kernel rewrites its code (jump labels) when that is over, and panics ("Oops: int3").
    accelerator = "kvm" if kvm else f"tcg,tb-size={TRANSLATION_MIB},thread=single"
    forward = f"hostfwd=tcp:{node.ssh.address}:{node.ssh.port}-:{_SSH}"
    kernel_words = " ".join(KERNEL if kvm else (*KERNEL, _PATIENCE))
    drive = "if=virtio,format=qcow2,cache=unsafe,discard=unmap"
    return [
        *(SYSTEM, "-name", escaped(node.name), *_BARE, "-pidfile", machine.mark),
        *("-machine", "q35", "-cpu", "host" if kvm else _EMULATED_CPU, "-accel", accelerator),
        *("-smp", str(node.cpus), "-m", str(node.memory_mib)),
        *("-kernel", str(kernel), "-initrd", str(machine.initrd), "-append", kernel_words),
        # A lab's data need not survive a power cut of the host.
        *("-drive", f"{drive},file={escaped(str(machine.disk))}"),
        *("-netdev", f"user,id=management,{forward}"),
        *("-device", f"virtio-net-pci,netdev=management,mac={management_mac(node.address)}"),
        *("-netdev", f"stream,id=fabric,server=on,{_socket(folder.link(node.name))}"),
        *("-device", f"virtio-net-pci,netdev=fabric,mac={fabric_mac(node.address)}"),
        *("-device", "virtio-rng-pci"),
        *("-serial", f"file:{machine.console}"),
        *("-qmp", f"unix:{escaped(folder.monitor(node.name))},server=on,wait=off"),
    ]


def disk_command(image: Path, machine: MachineFolder) -> list[str]:
    """Return the command that makes a machine's disk: a layer over the image's."""
    formats = ("-f", "qcow2", "-F", "qcow2")
    return ["qemu-img", "create", "-q", *formats, "-b", str(image), str(machine.disk)]


def hub_command(fabric: FabricFolder, monitor: str) -> list[str]:
    """Return the command of the fabric's hub; to be run in the fabric's folder."""
    return [
        *(SYSTEM, "-machine", "none", *_BARE, "-pidfile", fabric.mark),
        *("-qmp", f"unix:{monitor},server=on,wait=off"),
    ]


def probe_command(kernel: Path, console: Path) -> list[str]:
    """Return the command of a guest that shows whether KVM runs guests here.

    It has no file system and no initrd: its kernel comes as far as missing them, and ends.
    """
    return [
        *(SYSTEM, *_BARE, "-machine", "q35", "-cpu", "host", "-accel", "kvm", "-m", "256"),
        *("-kernel", str(kernel), "-append", "console=ttyS0 panic=-1", "-no-reboot"),
        *("-serial", f"file:{console}", "-monitor", "none"),
    ]


def escaped(text: str) -> str:
    """Return text as an option's value: qemu separates options by commas."""
    return text.replace(",", ",,")


def _socket(name: str) -> str:
    return f"addr.type=unix,addr.path={escaped(name)}"
