"""The commands that boot a machine."""

from ipaddress import IPv4Address
from pathlib import Path

from hpcsite.lab.machine import MachineDir
from hpcsite.lab.nspawn import nspawn_command, unit_command
from hpcsite.lab.spec import Endpoint, Machine

FOLDER = MachineDir(Path("/s/labs/lab/machines/gpu01"), "lab-gpu01")
GPU_NODE = Machine(
    "gpu01",
    IPv4Address("10.213.0.21"),
    Endpoint(IPv4Address("10.213.0.21")),
    gpu_devices=("/dev/nvidia0", "/dev/nvidia1"),
)


def test_a_machine_is_booted_on_the_bridge_with_its_devices() -> None:
    argv = nspawn_command(GPU_NODE, "hpc-lab", FOLDER)
    assert argv[0] == "systemd-nspawn"
    assert {
        "--boot",
        "--machine=lab-gpu01",
        "--hostname=gpu01",
        "--directory=/s/labs/lab/machines/gpu01/root",
        "--network-bridge=hpc-lab",
        "--register=no",
        "--keep-unit",
    } <= set(argv)
    assert [part for part in argv if part.startswith("--bind=")] == [
        "--bind=/s/labs/lab/machines/gpu01/devices/0:/dev/nvidia0",
        "--bind=/s/labs/lab/machines/gpu01/devices/1:/dev/nvidia1",
    ]


def test_under_systemd_a_machine_has_a_delegated_unit() -> None:
    argv = unit_command(FOLDER, "hpcsite-lab-gpu01.service", ["systemd-nspawn", "--boot"])
    own = argv[: argv.index("--")]
    assert own[0] == "systemd-run"
    assert "--property=Delegate=yes" in own
    assert "--unit=hpcsite-lab-gpu01.service" in own
    assert "--setenv=SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1" in own
    assert argv[-2:] == ["systemd-nspawn", "--boot"]
