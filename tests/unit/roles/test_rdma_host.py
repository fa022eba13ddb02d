"""What the module `rdma_host` says of machines of several kinds, each a folder like / would be."""

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.unit.roles.test_modules import load

RELEASE = "6.12.0-test"
DEP = "kernel/drivers/infiniband/{}.ko.xz: kernel/drivers/infiniband/core/ib_core.ko.xz\n"
ALL = ("sw/rxe/rdma_rxe", "core/ib_uverbs", "core/rdma_ucm", "core/ib_umad", "ulp/ipoib/ib_ipoib")


@pytest.fixture
def module() -> ModuleType:
    return load("modules", "rdma_host")


class Host:
    """A machine's /sys, /lib/modules and /run, made by a test."""

    def __init__(self, root: Path, *modules: str, interfaces: tuple[str, ...] = ("lo",)) -> None:
        self.root = root
        self.write(f"lib/modules/{RELEASE}/modules.dep", "".join(DEP.format(m) for m in modules))
        for name in interfaces:
            (root / "sys/class/net" / name).mkdir(parents=True)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def device(self, name: str, layer: str, interface: str) -> None:
        self.write(f"sys/class/infiniband/{name}/ports/1/link_layer", f"{layer}\n")
        self.write(f"sys/class/infiniband/{name}/ports/1/gid_attrs/ndevs/0", f"{interface}\n")


def problem(module: ModuleType, host: Host, mode: str, **wanted: Any) -> str:  # noqa: ANN401
    asked = {"mode": mode, "interface": "", "devices": [], "installed": False} | wanted
    text: str = module.problem_of(module.Machine(str(host.root), RELEASE), asked)
    return text


def test_a_kernel_without_the_module_is_told_with_what_helps(
    module: ModuleType, tmp_path: Path
) -> None:
    host = Host(tmp_path, *ALL[1:], interfaces=("lo", "eth1"))
    said = problem(module, host, "soft_roce", interface="eth1")
    assert f"the kernel {RELEASE} has no rdma_rxe" in said
    assert "linux-image-amd64" in said


def test_a_container_is_told_so(module: ModuleType, tmp_path: Path) -> None:
    host = Host(tmp_path, interfaces=("lo", "eth1"))
    host.write("run/systemd/container", "systemd-nspawn\n")
    assert "is a container" in problem(module, host, "soft_roce", interface="eth1")


def test_modules_that_an_upgrade_removed_need_a_reboot(module: ModuleType, tmp_path: Path) -> None:
    host = Host(tmp_path, *ALL, interfaces=("lo", "eth1"))
    (tmp_path / f"lib/modules/{RELEASE}/modules.dep").unlink()
    (tmp_path / f"lib/modules/{RELEASE}").rmdir()
    assert "reboot" in problem(module, host, "soft_roce", interface="eth1")


def test_modules_are_known_when_loaded_or_built_in(module: ModuleType, tmp_path: Path) -> None:
    host = Host(tmp_path, ALL[2], interfaces=("lo", "eth1"))
    (tmp_path / "sys/module/rdma_rxe").mkdir(parents=True)
    host.write(f"lib/modules/{RELEASE}/modules.builtin", "kernel/drivers/infiniband/ib-uverbs.ko\n")
    assert problem(module, host, "soft_roce", interface="eth1") == ""


def test_an_interface_that_is_not_there_is_named_beside_those_that_are(
    module: ModuleType, tmp_path: Path
) -> None:
    host = Host(tmp_path, *ALL, interfaces=("lo", "eth0", "eth1"))
    said = problem(module, host, "soft_roce", interface="fabric0")
    assert "rdma_interface is fabric0" in said
    assert said.endswith("this host has: eth0, eth1")
    assert problem(module, host, "soft_roce", interface="eth1") == ""


def test_infiniband_needs_an_adapter(module: ModuleType, tmp_path: Path) -> None:
    host = Host(tmp_path, *ALL)
    assert "no InfiniBand adapter (HCA) is on the PCI bus" in problem(module, host, "infiniband")
    host.device("rxe0", "Ethernet", "eth1")
    assert "only rxe0 (Ethernet)" in problem(module, host, "infiniband")
    host.write("sys/bus/pci/devices/0000:41:00.0/class", "0x020700\n")
    assert problem(module, host, "infiniband") == ""
    said = problem(module, host, "infiniband", installed=True)
    assert "PCI 0000:41:00.0 has no RDMA device" in said
    host.device("mlx5_0", "InfiniBand", "")
    assert problem(module, host, "infiniband", installed=True) == ""
    said = problem(module, host, "infiniband", devices=["mlx5_0", "mlx5_1"], installed=True)
    assert said == "no InfiniBand device mlx5_1; there is: mlx5_0"


def test_roce_needs_a_device_on_the_interface(module: ModuleType, tmp_path: Path) -> None:
    host = Host(tmp_path, *ALL, interfaces=("lo", "eth1"))
    host.device("mlx5_0", "Ethernet", "eth0")
    asked = {"interface": "eth1", "installed": True}
    said = problem(module, host, "roce", **asked)
    assert "no RDMA device is on eth1; there is: mlx5_0 on eth0" in said
    # Before packages are installed, a driver may not have made its device yet.
    assert problem(module, host, "roce", interface="eth1") == ""
    host.device("mlx5_1", "Ethernet", "eth1")
    assert problem(module, host, "roce", **asked) == ""
    assert "device mlx5_2 is on eth1" in problem(module, host, "roce", devices=["mlx5_2"], **asked)


def test_none_needs_nothing(module: ModuleType, tmp_path: Path) -> None:
    assert problem(module, Host(tmp_path), "none") == ""


def test_a_soft_device_names_its_interface(module: ModuleType, tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.device("rxe0", "Ethernet", "eth1")
    host.write("sys/class/infiniband/rxe0/parent", "eth1\n")
    assert module.Machine(str(tmp_path), RELEASE).devices() == [
        {"name": "rxe0", "link_layers": ["Ethernet"], "interfaces": ["eth1"], "users": []}
    ]


def test_programs_that_have_a_device_open_are_named(module: ModuleType, tmp_path: Path) -> None:
    host = Host(tmp_path)
    for number, name in enumerate(("rxe0", "rxe1")):
        host.device(name, "Ethernet", f"eth{number}")
        host.write(f"sys/class/infiniband_verbs/uverbs{number}/ibdev", f"{name}\n")
    host.write("proc/555/comm", "ib_write_bw\n")
    (tmp_path / "proc/555/fd").mkdir()
    (tmp_path / "proc/555/fd/3").symlink_to("/dev/infiniband/uverbs1")
    (tmp_path / "proc/555/fd/4").symlink_to("/dev/null")
    seen = module.Machine(str(tmp_path), RELEASE).devices()
    assert [device["users"] for device in seen] == [[], ["ib_write_bw (pid 555)"]]
