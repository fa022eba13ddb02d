"""Hosts that are alike become node groups, and odd ones are named."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from hpcsite.discover import Facts, Proposal, Roles, differences, node_names, propose
from hpcsite.discover.alike import alike
from hpcsite.discover.facts import Gpu
from hpcsite.errors import CouldNotRunError, UsageError
from hpcsite.site.catalogue import load_catalogue
from hpcsite.site.starter import StarterRdma
from tests.unit.discover.samples import copy, facts

DEVICES = tuple(f"mlx5_{number}" for number in (0, 3, 4, 5, 6, 9, 10, 11))


def proposed(hosts: Sequence[Facts], **roles: object) -> Proposal:
    chosen = Roles(**{"head": hosts[0].target, **roles})  # type: ignore[arg-type]
    return propose(hosts, node_names(hosts), chosen, load_catalogue())


def told(hosts: Sequence[Facts]) -> list[tuple[str, str]]:
    return differences(hosts, node_names(hosts))


def test_alike_hosts_are_one_group_with_the_least_memory() -> None:
    nodes = [copy("dgx01", n, memory_mib=2063867 - n) for n in range(1, 5)]
    found = proposed([copy("cpu01", 1), *nodes])
    (group,) = found.groups
    assert group.name == "dgx"
    assert [node.name for node in group.nodes] == ["dgx01", "dgx02", "dgx03", "dgx04"]
    assert (group.gpus, group.gpu_type, group.profile) == (8, "h100", "dgx-h100")
    assert group.hardware is not None
    assert group.hardware.memory_mib == 2063863
    assert "Memory differs, from 2063863 to 2063866 MiB; the least is declared." in group.notes
    assert group.rdma == StarterRdma("infiniband", devices=DEVICES, speed_gbit_s=400)
    # The head's 25 Gb/s Ethernet is no part of the compute nodes' InfiniBand.
    assert found.head.rdma is None
    assert told([*nodes]) == []


@pytest.mark.parametrize(("share", "groups"), [(0.991, 1), (0.98, 2)])
def test_memory_counts_as_alike_within_one_percent(share: float, groups: int) -> None:
    nodes = [copy("cpu01", n) for n in range(1, 4)]
    memory = nodes[0].memory_mib or 0
    nodes.append(copy("cpu01", 4, memory_mib=int(memory * share)))
    assert len(alike(nodes)) == groups
    said = told(nodes)
    assert [who for who, _ in said] == ([] if groups == 1 else ["cpu04"])
    if said:
        assert "MiB of memory fewer" in said[0][1]


def test_odd_one_is_a_group_of_its_own_and_named() -> None:
    nodes = [copy("dgx01", n) for n in range(1, 9)]
    nodes[6] = replace(nodes[6], gpus=nodes[6].gpus[:7])
    found = proposed([copy("cpu01", 1), *nodes])
    assert [(g.name, len(g.nodes), g.gpus) for g in found.groups] == [
        ("dgx", 7, 8),
        ("dgx_2", 1, 7),
    ]
    assert found.groups[1].profile == ""
    assert any("nearest profile is dgx-h100 (GPUs: 7" in note for note in found.groups[1].notes)
    assert told(nodes) == [
        ("dgx07", "1 GPU fewer (7; NVIDIA H100 80GB HBM3)"),
        ("dgx07", "1 GPU on the PCI bus is unknown to the driver"),
    ]


def test_odd_ones_are_told_together() -> None:
    nodes = [copy("dgx01", n) for n in range(1, 7)]
    slow = tuple(replace(p, rate_gbit_s=200) if p.hca == "mlx5_3" else p for p in nodes[0].ports)
    down = tuple(replace(p, state="DOWN") if p.hca == "mlx5_4" else p for p in nodes[0].ports)
    nodes[1] = replace(nodes[1], ports=slow)
    nodes[2] = replace(nodes[2], ports=slow)
    nodes[3] = replace(nodes[3], ports=down, os="Ubuntu 24.04")
    nodes[4] = replace(nodes[4], disks=nodes[4].disks[:-1])
    jumbo = replace(nodes[5].interfaces[0], mtu=9000)
    nodes[5] = replace(nodes[5], interfaces=(jumbo,))
    # None of these makes another kind of machine.
    assert len(alike(nodes)) == 1
    assert told(nodes) == [
        ("dgx[02-03]", "mlx5_3/1 at 200 Gb/s, not at 400 Gb/s"),
        ("dgx04", "mlx5_4/1 not active, not at 400 Gb/s"),
        ("dgx05", "1 disk fewer (9; 3.8 TB NVMe)"),
        ("dgx06", "MTU 9000 rather than 1500"),
        ("dgx04", "runs Ubuntu 24.04 rather than Ubuntu 22.04.4 LTS"),
    ]


def test_other_gpus_are_said_to_be_others() -> None:
    nodes = [copy("dgx01", n) for n in range(1, 4)]
    nodes[2] = replace(nodes[2], gpus=(Gpu("NVIDIA H200", 143771),) * 8)
    assert told(nodes) == [
        ("dgx03", "GPUs are 8 x NVIDIA H200 rather than 8 x NVIDIA H100 80GB HBM3")
    ]


def test_hosts_of_other_names_are_not_compared() -> None:
    assert told([copy("dgx01", 1), copy("cpu01", 1)]) == []


def test_groups_of_alike_hosts_with_other_names() -> None:
    hosts = [copy("dgx01", n, hostname=name) for n, name in enumerate(("ada", "bob", "cid"), 1)]
    (group,) = proposed([copy("cpu01", 1), *hosts]).groups
    assert group.name == "dgx_h100"
    racks = [replace(host, hostname=f"r{n}-gpu1") for n, host in enumerate(hosts)]
    assert proposed([copy("cpu01", 1), *racks]).groups[0].name == "r"


def test_profile_is_only_proposed_where_several_fit() -> None:
    """Without the firmware's word, eight H100 may be of any maker."""
    nodes = [copy("dgx01", n, product="") for n in (1, 2)]
    (group,) = proposed([copy("cpu01", 1), *nodes]).groups
    assert group.profile == ""
    (note,) = [note for note in group.notes if "may be one of these profiles" in note]
    assert "dgx-h100" in note


def test_roce_is_on_the_fastest_interface_with_a_link() -> None:
    original = facts("cpu01")
    fast = replace(original.ports[1], rate_gbit_s=100, state="ACTIVE", interfaces=("eth9",))
    nodes = [copy("cpu01", n, ports=(original.ports[0], fast)) for n in (1, 2)]
    (group,) = proposed([copy("dgx01", 1), *nodes]).groups
    assert group.rdma == StarterRdma("roce", "eth9")
    none = [copy("cpu01", n, ports=original.ports[1:]) for n in (1, 2)]
    assert proposed([copy("dgx01", 1), *none]).groups[0].rdma is None


@pytest.mark.parametrize(
    ("state", "says"),
    [("INIT", "; no subnet manager has been there yet"), ("DOWN", "; none has a link, and")],
)
def test_infiniband_without_a_subnet_manager_is_told(state: str, says: str) -> None:
    ports = tuple(replace(port, state=state) for port in facts("dgx01").ports)
    (group,) = proposed([copy("cpu01", 1), *(copy("dgx01", n, ports=ports) for n in (1, 2))]).groups
    assert group.rdma == StarterRdma("infiniband", devices=DEVICES, speed_gbit_s=400)
    assert any(says in note for note in group.notes)


def test_roles_by_name_and_by_what_ssh_was_given() -> None:
    hosts = [copy("cpu01", n) for n in range(1, 6)]
    found = proposed(hosts, head="cpu03", logins=("10.20.5.4",), nfs_server="cpu05")
    assert found.head.name == "cpu03"
    assert [login.name for login in found.logins] == ["cpu04"]
    assert found.nfs_server is not None
    assert found.nfs_server.name == "cpu05"
    assert [node.name for group in found.groups for node in group.nodes] == ["cpu01", "cpu02"]
    with pytest.raises(UsageError, match="--login: x is none of the hosts"):
        proposed(hosts, logins=("x",))


def test_single_machine_does_its_own_work() -> None:
    found = proposed([copy("dgx01", 1)])
    assert found.head.name == found.groups[0].nodes[0].name == "dgx01"


def test_names_of_the_inventory_stand_in_for_those_that_are_none() -> None:
    fresh = [
        replace(copy("cpu01", n), hostname="ubuntu", target=f"node{n}.example") for n in (1, 2)
    ]
    assert node_names(fresh) == {"node1.example": "node1", "node2.example": "node2"}
    assert [n.variables for n in proposed(fresh).groups[0].nodes] == [
        {"ansible_host": "node2.example", "site_address": "10.20.5.2"}
    ]
    by_address = [copy("cpu01", n, hostname="localhost") for n in (1, 2)]
    with pytest.raises(CouldNotRunError, match=r"10\.20\.5\.1 \(calls itself localhost\), 10"):
        node_names(by_address)


def test_same_machine_twice_is_told() -> None:
    twice = [copy("cpu01", 1), replace(copy("cpu01", 1), target="10.99.0.1")]
    with pytest.raises(CouldNotRunError, match="no name of their own"):
        proposed(twice)


def test_address_that_several_have_is_none_of_them() -> None:
    """Behind one forwarded port each, virtual machines have the same first address."""
    hosts = []
    for number in (1, 2):
        host = copy("cpu01", number, target=f"vm{number}", ssh_address="10.0.2.15")
        user = replace(host.interfaces[0], name="ens3", addresses=("10.0.2.15",))
        own = replace(host.interfaces[0], name="ens4", addresses=(f"10.9.0.{number}",))
        docker = replace(host.interfaces[0], name="docker0", addresses=(f"172.17.0.{number}",))
        hosts.append(replace(host, interfaces=(docker, user, own), default_interface="ens3"))
    found = proposed(hosts)
    assert (found.head.address, found.head.reached_by) == ("10.9.0.1", "vm1")
    without = [replace(host, interfaces=host.interfaces[:2]) for host in hosts]
    with pytest.raises(
        CouldNotRunError, match="no IPv4 address of its own is known of cpu01, cpu02"
    ):
        proposed(without)
