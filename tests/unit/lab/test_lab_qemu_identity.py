"""The files that make a virtual machine one particular machine."""

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest

from hpcsite.lab.qemu import identity
from hpcsite.lab.qemu.identity import Environment
from hpcsite.lab.spec import Endpoint, Machine
from tests.unit.lab.test_lab_cpio import members

ENVIRONMENT = Environment(IPv4Network("10.214.0.0/24"), "http://10.0.2.2:3142", "ssh-ed25519 A")
GPU = Machine(
    "gpu01",
    IPv4Address("10.214.0.21"),
    Endpoint(IPv4Address("127.0.0.1"), 22121),
    domain="vmlab.example",
    gpu_devices=("/dev/nvidia0", "/dev/nvidia1"),
    cpus=2,
    memory_mib=1536,
)


@pytest.fixture
def host_key(tmp_path: Path) -> Path:
    path = tmp_path / "ssh_host_ed25519_key"
    path.write_text("SECRET\n")
    path.with_name(f"{path.name}.pub").write_text("ssh-ed25519 PUBLIC root@gpu01\n")
    return path


def test_the_archive_holds_what_lasts_and_what_is_new(host_key: Path) -> None:
    archive = identity.archive(GPU, ENVIRONMENT, host_key, machine_id="f" * 32)
    files = {
        name.removeprefix("hpcsite-machine/"): (mode & 0o7777, data.decode())
        for name, (mode, data) in members(archive).items()
        if mode & 0o100000
    }
    assert files["new/etc/machine-id"] == (0o444, "f" * 32 + "\n")
    assert files["new/etc/hosts"][1].splitlines()[1] == "10.214.0.21\tgpu01.vmlab.example gpu01"
    assert "http://10.0.2.2:3142" in files["new/etc/apt/apt.conf.d/80proxy"][1]
    assert files["lasting/etc/hostname"] == (0o644, "gpu01\n")
    assert files["lasting/root/.ssh/authorized_keys"] == (0o600, "ssh-ed25519 A\n")
    assert files["lasting/etc/ssh/ssh_host_ed25519_key"] == (0o600, "SECRET\n")
    assert files["lasting/etc/tmpfiles.d/hpcsite-gpus.conf"][1] == (
        "c /dev/nvidia0 0666 root root - 195:0\nc /dev/nvidia1 0666 root root - 195:1\n"
    )
    network = files["lasting/etc/systemd/network/10-fabric0.network"][1]
    assert "Address=10.214.0.21/24" in network
    assert "MTUBytes=9000" in network
    link = files["lasting/etc/systemd/network/10-fabric0.link"][1]
    assert "MACAddress=52:55:0a:d6:00:15\n\n[Link]\nName=fabric0" in link
    assert "DNS=10.0.2.3" in files["lasting/etc/systemd/network/10-mgmt0.network"][1]


def test_folders_that_exist_in_a_root_keep_their_modes(host_key: Path) -> None:
    found = members(identity.archive(GPU, ENVIRONMENT, host_key, machine_id="f" * 32))
    modes = {name: mode & 0o7777 for name, (mode, _) in found.items() if mode & 0o040000}
    top = "hpcsite-machine/lasting"
    assert modes[f"{top}/root"] == 0o700
    assert modes[f"{top}/root/.ssh"] == 0o700
    assert modes[f"{top}/etc/ssh"] == 0o755
    assert modes[top] == 0o755


@pytest.mark.parametrize(
    "changed",
    [
        replace(GPU, memory_mib=2048),
        replace(GPU, cpus=1),
        replace(GPU, gpu_devices=()),
        replace(GPU, address=IPv4Address("10.214.0.23")),
        replace(GPU, ssh=Endpoint(IPv4Address("127.0.0.1"), 22199)),
    ],
)
def test_what_takes_a_restart_changes_the_fingerprint(changed: Machine, host_key: Path) -> None:
    before = identity.fingerprint(GPU, ENVIRONMENT, host_key)
    assert identity.fingerprint(GPU, ENVIRONMENT, host_key) == before
    assert identity.fingerprint(changed, ENVIRONMENT, host_key) != before
    assert "SECRET" not in before
