"""Switches: cables, ports, and that Slurm's tree has every node."""

import re
import time

import pytest
import yaml

from hpcsite.errors import Problem
from tests.unit.site.key_tables import DOCS
from tests.unit.site.mini import SiteFolder

HOSTS, SW = "hosts.yml", "group_vars/all/switches.yml"
SWITCHES = """\
site_fabrics:
  ib: {kind: infiniband, speed_gbit_s: 400, rails: 2, subnet_manager: managed_switch}
  lan: {kind: ethernet, speed_gbit_s: 25}
site_switches:
  leaf1:
    fabric: ib
    profile: qm9700
    managed: true
    links:
      - {nodes: gpu01, rail: 0}
      - {nodes: gpu02, rail: 0}
    uplinks: {spine1: 2}
  leaf2:
    fabric: ib
    links:
      - nodes: gpu[01-02]
        rail: 1
    uplinks:
      spine1: 2
  spine1:
    fabric: ib
    profile: qm9700
    role: spine
  access:
    fabric: lan
    profile: sn4600c
    links: [{nodes: "head,login"}]
    uplinks: {top: 4}
  top: {fabric: lan, role: spine}
"""


@pytest.fixture
def cabled(folder: SiteFolder) -> SiteFolder:
    """Give the valid site with switches."""
    folder.write(SW, SWITCHES)
    return folder


def only(folder: SiteFolder, code: str, at: str, *, key: str) -> Problem:
    problems = folder.problems()
    assert [problem.code for problem in problems] == [code], problems
    return placed(folder, problems[0], at, key=key)


def warned(folder: SiteFolder, code: str, at: str, *, key: str) -> Problem:
    warnings = folder.load().warnings
    assert [warning.code for warning in warnings] == [code], warnings
    return placed(folder, warnings[0], at, key=key)


def placed(folder: SiteFolder, problem: Problem, at: str, *, key: str) -> Problem:
    assert problem.where is not None
    assert problem.where.path == folder.path / SW
    assert problem.where.line == folder.line(SW, at)
    assert problem.key == key
    assert problem.hint
    return problem


def test_the_switches_are_valid(cabled: SiteFolder) -> None:
    site = cabled.load()
    assert site.warnings == ()
    assert site.keys.topology == "tree"


def test_unknown_fabric(cabled: SiteFolder) -> None:
    cabled.edit(SW, "  top: {fabric: lan,", "  top: {fabric: lam,")
    problems = {problem.code: problem for problem in cabled.problems()}
    assert set(problems) == {"HPC1360", "HPC1364"}
    problem = placed(cabled, problems["HPC1360"], "top: {", key="site_switches.top.fabric")
    assert problem.hint == "did you mean lan?"


def test_unknown_profile(cabled: SiteFolder) -> None:
    cabled.edit(SW, "profile: qm9700", "profile: qm9007")
    problem = only(cabled, "HPC1361", "qm9007", key="site_switches.leaf1.profile")
    assert "qm9700" in problem.hint


def test_a_profile_of_the_site_is_known(cabled: SiteFolder) -> None:
    cabled.edit(SW, "profile: qm9700", "profile: ours")
    cabled.write(
        "hardware/ours.yml",
        "sources:\n  order: {title: purchase order}\n"
        "switches:\n  ours: {title: Ours, fabric: infiniband, ports: {value: 3, source: order},"
        " speed_gbit_s: {value: 400, source: order}}\n",
    )
    problem = only(cabled, "HPC1365", "  leaf1:", key="site_switches.leaf1")
    assert "4 cables (2 to nodes, 2 to switches), and Ours has 3 ports" in problem.message


def test_profile_of_another_kind(cabled: SiteFolder) -> None:
    cabled.edit(SW, "profile: qm9700", "profile: sn5600")
    only(cabled, "HPC1372", "sn5600", key="site_switches.leaf1.profile")


def test_profile_of_less_speed(cabled: SiteFolder) -> None:
    cabled.edit(SW, "profile: qm9700", "profile: qm8700")
    problem = only(cabled, "HPC1373", "qm8700", key="site_switches.leaf1.profile")
    assert "ports of 200 Gb/s" in problem.message


def test_uplink_to_an_unknown_switch(cabled: SiteFolder) -> None:
    cabled.edit(SW, "{spine1: 2}", "{spin1: 2}")
    problems = cabled.problems()
    assert [problem.code for problem in problems] == ["HPC1362"]
    assert problems[0].hint == "did you mean spine1?"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("uplinks: {spine1: 2}", "uplinks: {leaf2: 2}", "leaf1 leads to the leaf leaf2"),
        ("uplinks: {spine1: 2}", "uplinks: {leaf1: 2}", " itself"),
        ("role: spine\n", "role: spine\n    uplinks: {leaf1: 2}\n", "leads to the leaf leaf1"),
        ("role: spine\n", "role: core\n    uplinks: {spine1: 2}\n", " itself"),
    ],
)
def test_uplink_that_does_not_lead_up(cabled: SiteFolder, old: str, new: str, says: str) -> None:
    cabled.edit(SW, old, new)
    (problem,) = cabled.problems()
    assert problem.code == "HPC1363"
    assert says in problem.message


def test_uplink_into_another_fabric(cabled: SiteFolder) -> None:
    cabled.edit(SW, "{top: 4}", "{top: 4, spine1: 1}")
    only(cabled, "HPC1364", "{top: 4", key="site_switches.access.uplinks.spine1")


@pytest.mark.parametrize(
    ("nodes", "says", "hint"),
    [
        ("gpu02x", "unknown nodes: gpu02x", "did you mean"),
        ("gpu[02-04]", "unknown nodes: gpu[03-04]", "hosts.yml"),
        ("gpu[02", "gpu[02 is no set of nodes", "gpu[001-016]"),
    ],
)
def test_unknown_nodes(cabled: SiteFolder, nodes: str, says: str, hint: str) -> None:
    cabled.edit(SW, "{nodes: gpu02, rail: 0}", f'{{nodes: "{nodes}", rail: 0}}')
    problem = only(cabled, "HPC1366", nodes, key="site_switches.leaf1.links[1].nodes")
    assert says in problem.message
    assert hint in problem.hint


def test_nodes_twice_on_a_rail(cabled: SiteFolder) -> None:
    cabled.edit(SW, "        rail: 1\n", "        rail: 0\n")
    problem = only(cabled, "HPC1367", "nodes: gpu[01-02]", key="site_switches.leaf2.links[0].nodes")
    assert problem.message == "gpu[01-02]: plugged in on rail 0 already, into leaf1"


def test_nodes_twice_on_all_rails(cabled: SiteFolder) -> None:
    cabled.edit(SW, "{nodes: gpu01, rail: 0}", "{nodes: gpu01}")
    assert cabled.problems() == []
    cabled.edit(SW, "        rail: 1\n", "")
    (problem,) = cabled.problems()
    assert problem.message == "gpu01: plugged in on all rails already, into leaf1"


def test_no_rail_is_left_for_a_link_without_one(cabled: SiteFolder) -> None:
    cabled.edit(SW, "rails: 2", "rails: 1")
    cabled.edit(SW, "        rail: 1\n", "")
    problem = only(cabled, "HPC1367", "nodes: gpu[01-02]", key="site_switches.leaf2.links[0].nodes")
    assert problem.message == "gpu[01-02]: plugged in on all rails already, into others"


def test_rail_that_the_fabric_does_not_have(cabled: SiteFolder) -> None:
    cabled.edit(SW, "        rail: 1\n", "        rail: 2\n")
    (problem,) = cabled.problems()
    assert (problem.code, problem.key) == ("HPC1368", "site_switches.leaf2.links[0].rail")
    assert problem.hint.startswith("rails are counted from 0: at most 1")


def test_a_node_that_is_not_on_all_rails(cabled: SiteFolder) -> None:
    cabled.edit(SW, "nodes: gpu[01-02]", "nodes: gpu02")
    warning = warned(cabled, "HPC1374", "site_switches:", key="site_switches")
    assert warning.message == "gpu01 of the fabric ib: in no switch on rail 1"
    cabled.edit(SW, "{nodes: gpu01, rail: 0}", "{nodes: gpu01}")
    cabled.edit(SW, "{spine1: 2}", "{spine1: 3}")
    assert cabled.load().warnings == ()


def test_a_mistake_of_many_switches_is_one(cabled: SiteFolder) -> None:
    cabled.edit(SW, "  ib: {kind", "  infini: {kind")
    problems = [problem for problem in cabled.problems() if problem.code == "HPC1360"]
    assert [problem.message for problem in problems] == [
        "fabric ib of the switches leaf[1-2],spine1 is unknown"
    ]
    cabled.edit(SW, "    role: spine\n", "    role: leaf\n")
    problems = [problem for problem in cabled.problems() if problem.code == "HPC1363"]
    assert [problem.message for problem in problems] == [
        "an uplink of the switches leaf[1-2] leads to the leaf spine1, which is not above a leaf"
    ]


def test_more_cables_than_ports(cabled: SiteFolder) -> None:
    cabled.edit(SW, "{spine1: 2}", "{spine1: 62}")
    assert [problem.code for problem in cabled.problems()] == []
    cabled.edit(SW, "{spine1: 62}", "{spine1: 63}")
    codes = [(problem.code, problem.key) for problem in cabled.problems()]
    assert codes == [("HPC1365", "site_switches.leaf1"), ("HPC1365", "site_switches.spine1")]
    assert "65 cables (2 to nodes, 63 to switches)" in cabled.problems()[0].message


def test_ports_that_are_split(cabled: SiteFolder) -> None:
    """At 200 Gb/s, each of the 64 ports of 400 Gb/s takes two cables."""
    cabled.edit(SW, "speed_gbit_s: 400", "speed_gbit_s: 200")
    cabled.edit(SW, "{spine1: 2}", "{spine1: 126}")
    assert cabled.problems() == []
    cabled.edit(SW, "{spine1: 126}", "{spine1: 127}")
    assert "64 ports, 2 in each by splitters" in cabled.problems()[0].message


def test_an_access_switch_has_ports_for_uplinks_besides(cabled: SiteFolder) -> None:
    cabled.edit(SW, "speed_gbit_s: 25", "speed_gbit_s: 1")
    cabled.edit(SW, "sn4600c", "sn2201")
    cabled.edit(SW, "{top: 4}", "{top: 48}")
    assert cabled.load().warnings == ()


def test_compute_nodes_that_are_plugged_in_nowhere(cabled: SiteFolder) -> None:
    cabled.edit(SW, "gpu[01-02]", "gpu01")
    cabled.edit(SW, "      - {nodes: gpu02, rail: 0}\n", "")
    problem = only(cabled, "HPC1369", "site_switches:", key="site_switches")
    assert problem.message == "compute nodes that are plugged into no switch: gpu02"
    cabled.edit(SW, "site_switches:", "site_slurm_topology: none\nsite_switches:")
    assert cabled.problems() == []


def test_a_tree_without_switches(folder: SiteFolder) -> None:
    folder.write(SW, "site_slurm_topology: tree\n")
    problem = only(folder, "HPC1369", "tree", key="site_slurm_topology")
    assert "gpu[01-02]" in problem.message


def test_a_node_without_the_fabric_is_placed_by_another(cabled: SiteFolder) -> None:
    cabled.edit(SW, "gpu[01-02]", "gpu01")
    cabled.edit(SW, "      - {nodes: gpu02, rail: 0}\n", "")
    cabled.edit(SW, '"head,login"', '"head,login,gpu02"')
    assert cabled.load().warnings == ()


def test_parts_that_nothing_joins(cabled: SiteFolder) -> None:
    cabled.edit(SW, "rails: 2", "rails: 1")
    cabled.edit(SW, "      - {nodes: gpu02, rail: 0}\n", "")
    cabled.edit(SW, "gpu[01-02]\n        rail: 1\n", "gpu02\n")
    assert cabled.load().warnings == ()
    cabled.edit(SW, "    uplinks: {spine1: 2}\n", "")
    warning = warned(cabled, "HPC1370", "  leaf2:", key="site_switches.leaf2")
    assert warning.message == "nothing joins the switches leaf[1-2] of the fabric ib"


def test_a_leaf_with_less_bandwidth_up(cabled: SiteFolder) -> None:
    cabled.edit(SW, "{spine1: 2}", "{spine1: 1}")
    warning = warned(cabled, "HPC1371", "{spine1: 1}", key="site_switches.leaf1.uplinks")
    assert warning.message.endswith("0.8 Tb/s to nodes, and at most 0.4 Tb/s up: 2.00 to 1")


def test_example_of_the_page_is_valid(folder: SiteFolder) -> None:
    page = (DOCS / "networks.md").read_text(encoding="utf-8")
    networks, gpu01 = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    folder.write(SW, networks)
    host = yaml.safe_load(gpu01)["gpu01"]
    assert host.pop("ansible_host") == "10.9.0.21"
    folder.write("host_vars/gpu01/x.yml", yaml.safe_dump(host))
    for number in (3, 4):
        folder.edit(HOSTS, "", f"            gpu0{number}: {{ansible_host: 10.9.0.2{number}}}\n")
    for number in (2, 3, 4):
        address = f"site_addresses: {{ib: 10.2.0.2{number}}}\n"
        folder.write(f"host_vars/gpu0{number}/x.yml", address)
    folder.edit(HOSTS, "", "    rdma: {children: {gpu: }}\n")
    assert folder.load().warnings == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("role: spine\n", "role: spyne\n"),
        ("rails: 2", "rails: 0"),
        ("        rail: 1\n", "        rail: one\n"),
        ("nodes: gpu[01-02]", "node: gpu[01-02]"),
        ("{spine1: 2}", "{spine1: 0}"),
        ("    fabric: ib\n    links", "    links"),
    ],
)
def test_half_valid_switches_make_no_second_mistake(cabled: SiteFolder, old: str, new: str) -> None:
    cabled.edit(SW, old, new)
    assert len(cabled.problems()) == 1, cabled.problems()


def test_2000_nodes_on_8_rails_take_no_time(folder: SiteFolder) -> None:
    lines = [
        f"            n{n:04}:\n              ansible_host: 10.5.{n // 250}.{n % 250 + 1}\n"
        for n in range(2000)
    ]
    folder.edit(HOSTS, "            gpu01:\n", "".join(lines) + "            gpu01:\n")
    units = [
        f"  l{unit}-{rail}: {{fabric: ib, profile: qm9700, uplinks: {{s{rail}: 32}}, "
        f"links: [{{nodes: 'n[{unit * 32:04}-{min(unit * 32 + 31, 1999):04}]', rail: {rail}}}]}}\n"
        for unit in range(63)
        for rail in range(8)
    ]
    spines = [f"  s{rail}: {{fabric: ib, role: spine}}\n" for rail in range(8)]
    folder.write(
        SW,
        "site_fabrics:\n  ib: {kind: infiniband, speed_gbit_s: 400, rails: 8, "
        "subnet_manager: managed_switch}\nsite_switches:\n"
        "  x: {fabric: ib, managed: true, uplinks: {s0: 9}, links: [{nodes: 'gpu[01-02]'}]}\n"
        + "".join(units + spines),
    )
    begin = time.monotonic()
    assert folder.problems() == []
    assert time.monotonic() - begin < 30
