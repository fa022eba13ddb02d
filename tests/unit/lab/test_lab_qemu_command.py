"""The commands of virtual machines, word by word."""

from ipaddress import IPv4Address
from pathlib import Path

import pytest

from hpcsite.lab.qemu import command
from hpcsite.lab.qemu.folder import FabricFolder, MachineFolder
from hpcsite.lab.spec import Endpoint, Machine

FOLDER = MachineFolder(Path("/s/labs/vm,lab/machines/gpu01"))
DRIVE = "if=virtio,format=qcow2,cache=unsafe,discard=unmap"
GPU = Machine(
    "gpu01",
    IPv4Address("10.214.0.21"),
    Endpoint(IPv4Address("127.0.0.1"), 22121),
    gpu_devices=("/dev/nvidia0",),
    cpus=2,
    memory_mib=1536,
)


@pytest.fixture(autouse=True)
def system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "SYSTEM", "qemu-system-x86_64")


def test_an_emulated_machine() -> None:
    argv = command.machine_command(GPU, FOLDER, Path("/c/image/vmlinuz"), kvm=False)
    assert argv == [
        *("qemu-system-x86_64", "-name", "gpu01"),
        *("-nodefaults", "-no-user-config", "-display", "none"),
        *("-pidfile", "/s/labs/vm,lab/machines/gpu01/pid"),
        *("-machine", "q35", "-cpu", "Nehalem", "-accel", "tcg,tb-size=512,thread=single"),
        *("-smp", "2", "-m", "1536"),
        *("-kernel", "/c/image/vmlinuz", "-initrd", "/s/labs/vm,lab/machines/gpu01/initrd"),
        *("-append", " ".join((*command.KERNEL, command._PATIENCE))),
        *("-drive", f"{DRIVE},file=/s/labs/vm,,lab/machines/gpu01/disk.qcow2"),
        *("-netdev", "user,id=management,hostfwd=tcp:127.0.0.1:22121-:22"),
        *("-device", "virtio-net-pci,netdev=management,mac=52:56:0a:d6:00:15"),
        *("-netdev", "stream,id=fabric,server=on,addr.type=unix,addr.path=gpu01.link"),
        *("-device", "virtio-net-pci,netdev=fabric,mac=52:55:0a:d6:00:15"),
        *("-device", "virtio-rng-pci"),
        *("-serial", "file:/s/labs/vm,lab/machines/gpu01/console.log"),
        *("-qmp", "unix:gpu01.monitor,server=on,wait=off"),
    ]


def test_a_machine_by_kvm_has_the_computers_own_cpu() -> None:
    argv = command.machine_command(GPU, FOLDER, Path("/c/image/vmlinuz"), kvm=True)
    assert argv[argv.index("-cpu") + 1] == "host"
    assert argv[argv.index("-accel") + 1] == "kvm"
    assert argv[argv.index("-append") + 1] == " ".join(command.KERNEL)


def test_the_hub_has_no_machine_and_a_monitor() -> None:
    fabric = FabricFolder(Path("/s/labs/vmlab/fabric"))
    assert command.hub_command(fabric, "hub.monitor") == [
        *("qemu-system-x86_64", "-machine", "none"),
        *("-nodefaults", "-no-user-config", "-display", "none"),
        *("-pidfile", "/s/labs/vmlab/fabric/hub.pid"),
        *("-qmp", "unix:hub.monitor,server=on,wait=off"),
    ]


def test_the_disk_is_a_layer_over_the_image() -> None:
    assert command.disk_command(Path("/c/image/disk.qcow2"), FOLDER) == [
        *("qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2"),
        *("-b", "/c/image/disk.qcow2", "/s/labs/vm,lab/machines/gpu01/disk.qcow2"),
    ]


def test_the_kernel_keeps_the_interfaces_names_and_finds_its_root() -> None:
    assert "root=/dev/vda rw" in command.KERNEL[0]
    assert "net.ifnames=0" in command.KERNEL


def test_hardware_addresses_are_distinct_and_nobodys() -> None:
    one = command.fabric_mac(IPv4Address("10.214.0.21"))
    other = command.fabric_mac(IPv4Address("10.214.0.22"))
    assert len({one, other, command.management_mac(IPv4Address("10.214.0.21"))}) == 3
    first = int(one[:2], 16)
    assert first & 0b11 == 0b10, "local, and of one machine"
