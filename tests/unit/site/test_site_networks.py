"""Networks of a site, and the addresses of its hosts in them."""

import time

import pytest

from hpcsite.errors import Problem
from tests.unit.site.mini import SiteFolder

HOSTS, NET = "hosts.yml", "group_vars/all/network.yml"
NETWORKS = """\
site_networks:
  cluster: {kind: ethernet, subnet: 10.9.0.0/24, gateway: 10.9.0.1, groups: [all]}
  ib:
    kind: infiniband
    subnet: 10.2.0.0/16
    mtu: 4092
    groups: [gpu]
    fabric: compute
  storage:
    kind: roce
    subnet: 10.3.0.0/16
    vlan: 300
    groups: [slurm_login]
    fabric: ethernet
site_fabrics:
  compute:
    kind: infiniband
    speed_gbit_s: 400
    subnet_manager: managed_switch
  ethernet: {kind: ethernet, speed_gbit_s: 100}
"""


@pytest.fixture
def net(folder: SiteFolder) -> SiteFolder:
    """Give the valid site with three networks."""
    folder.write(NET, NETWORKS)
    for host, address, key in (("login", "10.9.0.11", "storage"), ("gpu01", "10.9.0.21", "ib")):
        add(folder, host, address, f"site_addresses: {{{key}: {address.replace('10.9', ip(key))}}}")
    add(folder, "gpu02", "10.9.0.22", "site_addresses: {ib: 10.2.0.22}")
    folder.edit(HOSTS, "", "    rdma:\n      hosts:\n        gpu01:\n        gpu02:\n")
    return folder


def ip(network: str) -> str:
    return {"ib": "10.2", "storage": "10.3"}[network]


def add(folder: SiteFolder, host: str, address: str, text: str) -> None:
    """Add a line to the variables of a host."""
    indent = " " * (10 if host in ("head", "login") else 14)
    folder.edit(HOSTS, f"{address}\n", f"{address}\n{indent}{text}  # {host}\n")


def only(folder: SiteFolder, code: str, file: str, at: str, *, key: str) -> Problem:
    """Find the one problem, and hold it to its code, place and key."""
    problems = folder.problems()
    assert [problem.code for problem in problems] == [code], problems
    (problem,) = problems
    assert problem.where is not None
    assert problem.where.path == folder.path / file
    assert problem.where.line == folder.line(file, at)
    assert problem.key == key
    assert problem.hint
    return problem


def test_the_networks_are_valid(net: SiteFolder) -> None:
    site = net.load()
    assert site.warnings == ()
    assert str(site.keys.networks["ib"].subnet) == "10.2.0.0/16"


def test_overlapping_subnets(net: SiteFolder) -> None:
    net.edit(NET, "10.3.0.0/16", "10.2.128.0/17")
    net.edit(HOSTS, "{storage: 10.3.0.11}", "{storage: 10.2.128.11}")
    problem = only(net, "HPC1330", NET, "10.2.128.0/17", key="site_networks.storage.subnet")
    assert problem.message == "10.2.128.0/17 of storage overlaps 10.2.0.0/16 of ib"


def test_a_subnet_that_holds_two_others(net: SiteFolder) -> None:
    net.edit(NET, "site_fabrics:", "  a: {kind: ethernet, subnet: 10.0.0.0/8}\nsite_fabrics:")
    keys = {problem.key for problem in net.problems() if problem.code == "HPC1330"}
    assert keys == {"site_networks.a.subnet"}
    assert len([p for p in net.problems() if p.code == "HPC1330"]) == 3


@pytest.mark.parametrize(("network", "wrong"), [("10.9.0.0/24", False), ("10.9.0.0/16", True)])
def test_the_network_of_a_lab_is_one_of_them_or_apart(
    net: SiteFolder, network: str, wrong: bool
) -> None:
    net.edit(NET, "", f"site_lab: {{network: {network}}}\n")
    found = [problem for problem in net.problems() if problem.code == "HPC1330"]
    assert [problem.key for problem in found] == ["site_lab.network"] * wrong


@pytest.mark.parametrize(
    ("gateway", "says"),
    [("10.8.0.1", "is not in"), ("10.9.0.0", "no host's address"), ("10.9.0.255", "no host's")],
)
def test_gateway_that_cannot_be_reached(net: SiteFolder, gateway: str, says: str) -> None:
    net.edit(NET, "10.9.0.1,", f"{gateway},")
    problem = only(net, "HPC1331", NET, f"gateway: {gateway}", key="site_networks.cluster.gateway")
    assert says in problem.message


def test_a_subnet_of_two_addresses_has_no_ends(net: SiteFolder) -> None:
    net.edit(
        NET,
        "site_fabrics:",
        "  a: {kind: ethernet, subnet: 10.7.0.0/31, gateway: 10.7.0.0}\nsite_fabrics:",
    )
    assert net.problems() == []


def test_unknown_group(net: SiteFolder) -> None:
    net.edit(NET, "[slurm_login]", "[slurm_logn]")
    problem = only(net, "HPC1338", NET, "[slurm_logn]", key="site_networks.storage.groups[0]")
    assert problem.hint == "did you mean slurm_login?"


def test_a_group_without_hosts_is_no_unknown_one(net: SiteFolder) -> None:
    net.edit(NET, "[slurm_login]", "[slurm_login, lustre_oss]")
    assert net.problems() == []


def test_unknown_fabric(net: SiteFolder) -> None:
    net.edit(NET, "fabric: compute", "fabric: compte")
    problem = only(net, "HPC1339", NET, "fabric: compte", key="site_networks.ib.fabric")
    assert problem.hint == "did you mean compute?"


def test_network_and_fabric_of_different_kinds(net: SiteFolder) -> None:
    net.edit(NET, "fabric: ethernet", "fabric: compute")
    only(net, "HPC1340", NET, "kind: roce", key="site_networks.storage.kind")


def test_mtu_above_that_of_infiniband(net: SiteFolder) -> None:
    net.edit(NET, "mtu: 4092", "mtu: 65520")
    assert net.problems() == []
    net.edit(NET, "mtu: 65520", "mtu: 65521")
    only(net, "HPC1341", NET, "mtu: 65521", key="site_networks.ib.mtu")


def test_vlan_on_infiniband(net: SiteFolder) -> None:
    net.edit(NET, "    mtu: 4092\n", "    vlan: 7\n")
    only(net, "HPC1344", NET, "vlan: 7", key="site_networks.ib.vlan")


def test_different_mtus_on_one_fabric(net: SiteFolder) -> None:
    net.edit(NET, "    vlan: 300\n", "    vlan: 300\n    mtu: 9000\n")
    other = "  lan: {kind: ethernet, subnet: 10.4.0.0/16, mtu: 1500, fabric: ethernet}\n"
    net.edit(NET, "site_fabrics:", other + "site_fabrics:")
    (warning,) = net.load().warnings
    assert (warning.code, warning.key) == ("HPC1342", "site_networks.lan.mtu")
    assert warning.where is not None
    assert warning.where.line == net.line(NET, "10.4.0.0/16")
    net.edit(NET, "mtu: 1500", "mtu: 9000")
    assert net.load().warnings == ()


def test_address_in_an_unknown_network(net: SiteFolder) -> None:
    add(net, "head", "10.9.0.10", "site_addresses: {storge: 10.3.0.10}")
    problem = only(net, "HPC1332", HOSTS, "storge", key="site_addresses.storge")
    assert problem.hint == "did you mean storage?"
    assert problem.host == "head"


def test_mac_in_an_unknown_network(net: SiteFolder) -> None:
    add(net, "head", "10.9.0.10", 'site_macs: {x: "0c:42:a1:00:00:01"}')
    only(net, "HPC1332", HOSTS, "site_macs", key="site_macs.x")


def test_address_outside_of_its_network(net: SiteFolder) -> None:
    net.edit(HOSTS, "{ib: 10.2.0.22}", "{ib: 10.3.0.22}")
    problem = only(net, "HPC1333", HOSTS, "10.3.0.22", key="site_addresses.ib")
    assert problem.message.startswith("the address of gpu02, 10.3.0.22, is not in 10.2.0.0/16")


def test_addresses_outside_of_a_network_are_one_mistake(net: SiteFolder) -> None:
    net.edit(NET, "10.2.0.0/16", "10.22.0.0/16")
    (problem,) = net.problems()
    assert "gpu[01-02]" in problem.message


@pytest.mark.parametrize("address", ["10.2.0.0", "10.2.255.255"])
def test_address_of_the_subnet_itself(net: SiteFolder, address: str) -> None:
    net.edit(HOSTS, "10.2.0.22", address)
    only(net, "HPC1334", HOSTS, address, key="site_addresses.ib")


def test_one_address_for_two_hosts(net: SiteFolder) -> None:
    net.edit(HOSTS, "10.2.0.22", "10.2.0.21")
    problem = only(net, "HPC1335", HOSTS, "# gpu02", key="site_addresses.ib")
    assert problem.message == "10.2.0.21 of gpu02 in the network ib is also that of gpu01"


def test_an_address_is_also_the_cluster_address_of_another(net: SiteFolder) -> None:
    add(net, "head", "10.9.0.10", "site_addresses: {cluster: 10.9.0.22}")
    problem = only(net, "HPC1335", HOSTS, "# head", key="site_addresses.cluster")
    assert "that of gpu02" in problem.message


def test_the_cluster_address_may_stand_twice_and_a_service_node_be_the_router(
    net: SiteFolder,
) -> None:
    add(net, "head", "10.9.0.10", "site_addresses: {cluster: 10.9.0.10, storage: 10.3.0.1}")
    net.edit(NET, "10.3.0.0/16", "10.3.0.0/16\n    gateway: 10.3.0.1")
    assert net.problems() == []


def test_a_compute_node_is_no_router(net: SiteFolder) -> None:
    net.edit(NET, "10.2.0.0/16", "10.2.0.0/16\n    gateway: 10.2.0.21")
    problem = only(net, "HPC1335", HOSTS, "# gpu01", key="site_addresses.ib")
    assert "the gateway of the network ib" in problem.message


def test_same_mac_of_two_hosts(net: SiteFolder) -> None:
    add(net, "head", "10.9.0.10", 'site_macs: {cluster: "0c:42:a1:00:00:0a"}')
    add(net, "login", "10.9.0.11", 'site_macs: {cluster: "0C:42:A1:00:00:0A"}')
    problem = only(net, "HPC1336", HOSTS, "0C:42", key="site_macs.cluster")
    assert "same MAC as head" in problem.message


@pytest.mark.parametrize("mac", ["ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00", "01:00:5e:00:00:01"])
def test_mac_of_no_interface(net: SiteFolder, mac: str) -> None:
    add(net, "head", "10.9.0.10", f'site_macs: {{cluster: "{mac}"}}')
    only(net, "HPC1345", HOSTS, mac, key="site_macs.cluster")


def test_hosts_without_an_address(net: SiteFolder) -> None:
    net.edit(NET, "groups: [gpu]", "groups: [gpu, slurm_login]")
    net.edit(HOSTS, "    rdma:\n      hosts:\n", "    rdma:\n      hosts:\n        login:\n")
    problem = only(net, "HPC1337", NET, "[gpu, slurm_login]", key="site_networks.ib.groups")
    assert problem.message == "no address in the network ib: login"


def test_a_group_that_is_elsewhere_has_no_cluster_address_in_it(net: SiteFolder) -> None:
    net.edit(HOSTS, "10.9.0.10\n", "10.8.0.10\n")
    problem = only(net, "HPC1337", NET, "groups: [all]", key="site_networks.cluster.groups")
    assert problem.message == "no address in the network cluster: head"


def test_infiniband_network_without_rdma(net: SiteFolder) -> None:
    net.edit(HOSTS, "        gpu01:\n        gpu02:\n", "        gpu01:\n")
    problem = only(net, "HPC1343", NET, "kind: infiniband", key="site_networks.ib.kind")
    assert problem.message == "hosts of the InfiniBand network ib are not in the group rdma: gpu02"


def test_infiniband_network_of_hosts_with_roce(net: SiteFolder) -> None:
    net.edit(
        HOSTS,
        "10.9.0.21\n",
        "10.9.0.21\n              rdma_mode: roce\n              rdma_interface: eth1\n",
    )
    problem = only(net, "HPC1343", NET, "kind: infiniband", key="site_networks.ib.kind")
    assert problem.message.endswith("of another rdma_mode: gpu01")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("subnet: 10.2.0.0/16", "subnet: 10.2.0.0/99"),
        ("kind: infiniband\n    subnet", "kind: ifiniband\n    subnet"),
        ("    subnet: 10.3.0.0/16\n", ""),
        ("    groups: [gpu]", "    groups: 7"),
        ("gateway: 10.9.0.1", "gateway: ten"),
    ],
)
def test_half_valid_networks_make_no_second_mistake(net: SiteFolder, old: str, new: str) -> None:
    net.edit(NET, old, new)
    assert len(net.problems()) == 1


def test_half_valid_hosts_make_no_second_mistake(net: SiteFolder) -> None:
    net.edit(HOSTS, "{ib: 10.2.0.22}", "[x]")
    add(net, "head", "10.9.0.10", "site_macs: {cluster: zz}")
    codes = [problem.code for problem in net.problems()]
    assert sorted(codes) == ["HPC1038", "HPC1040"]


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (HOSTS, "{ib: 10.2.0.22}", "{ibb: 10.2.0.22}"),
        (NET, "  storage:\n", "  storge:\n"),
        (HOSTS, "        gpu:\n", "        gpuu:\n"),
        (NET, "site_fabrics:", "site_fabric:"),
        (NET, "  ethernet: {kind", "  etherne: {kind"),
        (NET, "site_networks:", "site_network:"),
    ],
)
def test_a_mistyped_name_is_one_mistake(net: SiteFolder, file: str, old: str, new: str) -> None:
    net.edit(file, old, new)
    assert len(net.problems()) == 1, net.problems()


def test_2000_nodes_take_no_time(net: SiteFolder) -> None:
    lines = [
        f"            n{n:04}:\n              ansible_host: 10.5.{n // 250}.{n % 250}\n"
        f"              site_addresses: {{ib: 10.2.{n // 250}.{n % 250 + 1}}}\n"
        for n in range(300, 2300)
    ]
    net.edit(HOSTS, "            gpu01:\n", "".join(lines) + "            gpu01:\n")
    net.edit(NET, "groups: [all]", "groups: [slurm_login]")
    net.edit(HOSTS, "    rdma:\n", "    rdma:\n      children:\n        gpu:\n")
    begin = time.monotonic()
    assert net.problems() == []
    assert time.monotonic() - begin < 30
