"""RDMA in the site's description: its rules, and what verification reads of it."""

import pytest
import yaml

from hpcsite.paths import content_dir
from hpcsite.site import rdma
from hpcsite.site.model import Host
from tests.unit.site.mini import SiteFolder

HOSTS, SITE = "hosts.yml", "group_vars/all/site.yml"
VARS = "group_vars/rdma/rdma.yml"
GROUP = "    rdma:\n      children:\n        gpu:\n"


def with_rdma(folder: SiteFolder, text: str) -> None:
    folder.edit(HOSTS, "", GROUP)
    folder.write(VARS, text)


@pytest.mark.parametrize(
    "text",
    [
        "rdma_mode: infiniband\n",
        "rdma_mode: none\n",
        "rdma_devices: [mlx5_0, mlx5_1]\n",
        "rdma_mode: soft_roce\nrdma_interface: fabric0\nrdma_soft_device: rxe1\n",
        "rdma_mode: roce\nrdma_interface: enp65s0np0.100\n",
    ],
)
def test_what_is_whole_is_taken(folder: SiteFolder, text: str) -> None:
    with_rdma(folder, text)
    assert folder.problems() == []


@pytest.mark.parametrize("mode", ["roce", "soft_roce"])
def test_roce_without_an_interface_is_told_once_where_the_mode_stands(
    folder: SiteFolder, mode: str
) -> None:
    with_rdma(folder, f"# the fabric\nrdma_mode: {mode}\n")
    (problem,) = folder.problems()
    assert problem.message == (f"rdma_mode is {mode}, but rdma_interface is not set: gpu[01-02]")
    assert problem.code == "HPC1320"
    assert problem.where is not None
    assert (problem.where.path, problem.where.line) == (folder.path / VARS, 2)
    assert "rdma_interface: eth1" in problem.hint


def test_hosts_outside_of_the_group_need_no_interface(folder: SiteFolder) -> None:
    folder.edit(
        HOSTS, "", "    rdma:\n      hosts:\n        gpu01:\n          rdma_interface: eth1\n"
    )
    folder.write("group_vars/all/rdma.yml", "rdma_mode: soft_roce\n")
    assert folder.problems() == []


@pytest.mark.parametrize(
    ("text", "says", "code"),
    [
        ("rdma_mode: rocce", "it must be one of infiniband, roce, soft_roce, none", "HPC1041"),
        ("rdma_interface: eth1 up", "no name of a network interface", "HPC1321"),
        ("rdma_interface: a-name-of-16-chr", "no name of a network interface", "HPC1321"),
        ("rdma_soft_device: a/b", "no name of an RDMA device", "HPC1322"),
        ("rdma_interface: '{{ local_x }}'", "rdma_interface holds a template", "HPC1323"),
        ("rdma_devices: ['{{ local_x }}']", "rdma_devices holds a template", "HPC1323"),
    ],
)
def test_what_cannot_be_is_told(folder: SiteFolder, text: str, says: str, code: str) -> None:
    with_rdma(folder, text)
    (problem,) = folder.problems()
    assert says in problem.message
    assert problem.code == code
    assert problem.where is not None
    assert problem.where.path == folder.path / VARS


def host(*groups: str, **variables: object) -> Host:
    return Host(name="gpu01", groups=frozenset(groups), address="10.0.0.1", vars=variables)


def test_the_defaults_are_the_role_s() -> None:
    text = (content_dir() / "roles/rdma/defaults/main.yml").read_text()
    defaults = yaml.safe_load(text)
    assert defaults == {
        "rdma_mode": rdma.DEFAULT_MODE,
        "rdma_interface": "",
        "rdma_devices": [],
        "rdma_soft_device": rdma.DEFAULT_SOFT_DEVICE,
    }
    assert set(defaults) == set(rdma.KEYS)


def test_what_a_host_is_to_have() -> None:
    assert rdma.rdma_of(host("slurm_compute", rdma_mode="infiniband")) is None
    assert rdma.rdma_of(host("rdma", rdma_mode="none")) is None
    assert rdma.rdma_of(host("rdma")) == rdma.Rdma("infiniband")
    assert rdma.rdma_of(
        host("rdma", rdma_mode="soft_roce", rdma_interface="eth1", rdma_devices=["mlx5_0"])
    ) == rdma.Rdma("soft_roce", "eth1", ("rxe0",))
    assert rdma.rdma_of(
        host("rdma", rdma_mode="roce", rdma_interface="eth1", rdma_devices=["mlx5_0"])
    ) == rdma.Rdma("roce", "eth1", ("mlx5_0",))
