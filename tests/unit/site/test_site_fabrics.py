"""Fabrics: HCAs and rails, and subnet managers of InfiniBand."""

import pytest

from hpcsite.errors import Problem
from tests.unit.site.mini import SiteFolder

HOSTS, FAB = "hosts.yml", "group_vars/all/fabric.yml"
FABRICS = """\
rdma_devices: [mlx5_0, mlx5_1]
site_fabrics:
  ib:
    kind: infiniband
    speed_gbit_s: 400
    rails: 2
    hcas: [mlx5_0, mlx5_1]
"""
RDMA = """\
    rdma:
      hosts:
        head:
        login:
        gpu01:
        gpu02:
    ib_subnet_manager:
      hosts:
        head:
          site_subnet_manager_priority: 14
        login:
          site_subnet_manager_priority: 13
"""
SWITCH = """\
site_slurm_topology: none
site_switches:
  leaf1: {fabric: ib, managed: true}
"""


@pytest.fixture
def ib(folder: SiteFolder) -> SiteFolder:
    """Give the valid site with InfiniBand and two subnet managers."""
    folder.write(FAB, FABRICS)
    folder.edit(HOSTS, "", RDMA)
    return folder


def only(folder: SiteFolder, code: str, file: str, at: str, *, key: str) -> Problem:
    problems = folder.problems()
    assert [problem.code for problem in problems] == [code], problems
    return placed(folder, problems[0], file, at, key=key)


def warned(folder: SiteFolder, code: str, file: str, at: str, *, key: str) -> Problem:
    warnings = folder.load().warnings
    assert [warning.code for warning in warnings] == [code], warnings
    return placed(folder, warnings[0], file, at, key=key)


def placed(folder: SiteFolder, problem: Problem, file: str, at: str, *, key: str) -> Problem:
    assert problem.where is not None
    assert problem.where.path == folder.path / file
    assert problem.where.line == folder.line(file, at)
    assert problem.key == key
    assert problem.hint
    return problem


def unmanaged(folder: SiteFolder) -> None:
    """Take the subnet managers out."""
    head, _, _ = RDMA.partition("    ib_subnet_manager")
    folder.edit(HOSTS, RDMA, head)


def test_the_fabric_is_valid(ib: SiteFolder) -> None:
    assert ib.load().warnings == ()


@pytest.mark.parametrize("hcas", ["[mlx5_0]", "[mlx5_0, mlx5_1, mlx5_2]"])
def test_hcas_of_another_number_than_rails(ib: SiteFolder, hcas: str) -> None:
    ib.edit(FAB, "hcas: [mlx5_0, mlx5_1]", f"hcas: {hcas}")
    ib.edit(FAB, "rdma_devices: [mlx5_0, mlx5_1]\n", "")
    problem = only(ib, "HPC1350", FAB, "hcas:", key="site_fabrics.ib.hcas")
    assert problem.message.startswith("the fabric ib has 2 rails, and ")


def test_hcas_may_be_left_out(ib: SiteFolder) -> None:
    ib.edit(FAB, "    hcas: [mlx5_0, mlx5_1]\n", "")
    assert ib.load().warnings == ()


def test_an_hca_twice(ib: SiteFolder) -> None:
    ib.edit(FAB, "hcas: [mlx5_0, mlx5_1]", "hcas: [mlx5_1, mlx5_1]")
    ib.edit(FAB, "rdma_devices: [mlx5_0, mlx5_1]\n", "")
    only(ib, "HPC1351", FAB, "hcas:", key="site_fabrics.ib.hcas[1]")


def test_an_hca_that_is_no_name_is_no_missing_one(ib: SiteFolder) -> None:
    ib.edit(FAB, "hcas: [mlx5_0, mlx5_1]", 'hcas: [mlx5_0, "mlx5 1"]')
    assert [problem.code for problem in ib.problems()] == ["HPC1040"]


def test_devices_of_hosts_that_no_fabric_has(ib: SiteFolder) -> None:
    ib.edit(FAB, "rdma_devices: [mlx5_0, mlx5_1]", "rdma_devices: [mlx5_0, mlx5_4]")
    warning = warned(ib, "HPC1352", FAB, "rdma_devices", key="rdma_devices")
    assert warning.message == "mlx5_4 of gpu[01-02],head,login is no HCA of a fabric"


def test_devices_of_another_kind_of_network_are_not_held_to_infiniband(ib: SiteFolder) -> None:
    ib.write(
        "group_vars/gpu/x.yml", "rdma_mode: roce\nrdma_interface: eth1\nrdma_devices: [bnxt0]\n"
    )
    assert ib.load().warnings == ()


def test_fabric_without_a_subnet_manager(ib: SiteFolder) -> None:
    unmanaged(ib)
    problem = only(ib, "HPC1353", FAB, "  ib:", key="site_fabrics.ib")
    assert "no host, and no switch that is managed" in problem.message


def test_a_managed_switch_manages_the_subnet(ib: SiteFolder) -> None:
    unmanaged(ib)
    ib.edit(FAB, "", SWITCH)
    assert ib.problems() == []
    ib.edit(FAB, "managed: true", "managed: false")
    assert [problem.code for problem in ib.problems()] == ["HPC1353"]


@pytest.mark.parametrize("manager", ["host", "managed_switch"])
def test_what_is_to_manage_the_subnet_is_there(ib: SiteFolder, manager: str) -> None:
    ib.edit(FAB, "", SWITCH)
    ib.edit(FAB, "    rails: 2\n", f"    rails: 2\n    subnet_manager: {manager}\n")
    assert ib.problems() == []
    if manager == "host":
        unmanaged(ib)
    else:
        ib.edit(FAB, "managed: true", "managed: false")
    only(ib, "HPC1353", FAB, "subnet_manager:", key="site_fabrics.ib.subnet_manager")


def test_a_managed_switch_need_not_be_described(ib: SiteFolder) -> None:
    unmanaged(ib)
    ib.edit(FAB, "    rails: 2\n", "    rails: 2\n    subnet_manager: managed_switch\n")
    assert ib.problems() == []


@pytest.mark.parametrize("kind", ["roce", "ethernet"])
def test_ethernet_has_no_subnet_manager(ib: SiteFolder, kind: str) -> None:
    ib.edit(FAB, "kind: infiniband\n", f"kind: {kind}\n    subnet_manager: host\n")
    only(ib, "HPC1355", FAB, "subnet_manager", key="site_fabrics.ib.subnet_manager")


def test_infiniband_that_is_not_described(folder: SiteFolder) -> None:
    head, _, _ = RDMA.partition("    ib_subnet_manager")
    folder.edit(HOSTS, "", head)
    warning = warned(folder, "HPC1356", HOSTS, "    rdma:", key="rdma")
    assert "gpu[01-02],head,login" in warning.message
    folder.write("group_vars/all/rdma.yml", "rdma_mode: roce\nrdma_interface: eth1\n")
    assert folder.load().warnings == ()


def test_subnet_manager_without_infiniband(ib: SiteFolder) -> None:
    ib.edit(
        HOSTS,
        "        login:\n        gpu01:\n        gpu02:\n",
        "        gpu01:\n        gpu02:\n",
    )
    problem = only(ib, "HPC1357", HOSTS, "ib_subnet_manager", key="ib_subnet_manager")
    assert problem.message == "subnet managers without InfiniBand: login"


def test_two_subnet_managers_of_one_priority(ib: SiteFolder) -> None:
    ib.edit(HOSTS, "priority: 13", "priority: 14")
    (problem,) = ib.problems()
    assert (problem.code, problem.key) == ("HPC1354", "site_subnet_manager_priority")
    assert problem.message == "the subnet managers head and login both have the priority 14"
    assert problem.where is not None
    assert problem.where.line == ib.line(HOSTS, "ib_subnet_manager") + 5


def test_two_subnet_managers_without_a_priority(ib: SiteFolder) -> None:
    for priority in (14, 13):
        ib.edit(HOSTS, f"          site_subnet_manager_priority: {priority}\n", "")
    (problem,) = ib.problems()
    assert problem.message == "the subnet managers head and login both have no priority"


def test_subnet_managers_of_two_fabrics_do_not_meet(ib: SiteFolder) -> None:
    ib.edit(HOSTS, "priority: 13", "priority: 14")
    ib.edit(FAB, "", "  storage: {kind: infiniband, speed_gbit_s: 200}\n")
    ib.edit(
        FAB,
        "",
        "site_slurm_topology: none\nsite_switches:\n"
        "  leaf1: {fabric: ib, links: [{nodes: head}]}\n"
        "  leaf2: {fabric: storage, links: [{nodes: login}]}\n",
    )
    assert ib.problems() == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("kind: infiniband", "kind: ifiniband"),
        ("rails: 2", "rails: two"),
        ("hcas: [mlx5_0, mlx5_1]", "hcas: mlx5_0"),
        ("speed_gbit_s: 400", "speed_gbits: 400"),
    ],
)
def test_half_valid_fabrics_make_no_second_mistake(ib: SiteFolder, old: str, new: str) -> None:
    ib.edit(FAB, old, new)
    assert len(ib.problems()) == 1
