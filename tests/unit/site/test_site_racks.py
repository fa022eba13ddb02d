"""Racks in the site's description: what is refused, what is warned of, and what is taken."""

import re
import time
from pathlib import Path

import pytest

from hpcsite.errors import InvalidSiteError, Problem
from hpcsite.site.catalogue import load_catalogue
from hpcsite.site.draft import Draft
from hpcsite.site.explain import check_keys
from hpcsite.site.load import read_sources
from hpcsite.site.model import SiteKeys
from hpcsite.site.rules.racks import RULES
from tests.unit.site.mini import SiteFolder, resolve

RACKS = "group_vars/all/racks.yml"
DOC = Path(__file__).resolve().parents[3] / "docs" / "racks.md"
GOOD = """\
site_fabrics:
  ib:
    kind: infiniband
    speed_gbit_s: 400
site_switches:
  leaf1:
    fabric: ib
    profile: qm9700
    managed: true
    links:
      - {nodes: "gpu[01-02]"}
site_racks:
  r1:
    units: 42
    depth_mm: 1000
    max_weight_kg: 900
    feeds:
      a: {kw: 12}
      b: {kw: 12}
      c: {kw: 12}
    contents:
      - hosts: gpu[01-02]
        u: 1
        feeds: {a: 2, b: 2, c: 2}
      - switch: leaf1
        u: 42
        feeds: {a: 1, b: 1}
"""


@pytest.fixture
def site(folder: SiteFolder) -> SiteFolder:
    folder.edit("group_vars/all/slurm.yml", "  gpu:\n", "  gpu:\n    hardware_profile: dgx-h100\n")
    folder.write(RACKS, GOOD)
    return folder


def found(site: SiteFolder) -> list[Problem]:
    """Errors and warnings of racks; those of other areas are the affair of their own tests."""
    try:
        problems = list(site.load().warnings)
    except InvalidSiteError as error:
        problems = [*error.problems, *error.warnings]
    return [problem for problem in problems if problem.code.startswith("HPC19")]


def test_a_good_rack_has_no_problems(site: SiteFolder) -> None:
    assert found(site) == []


def test_a_site_without_racks_has_none(folder: SiteFolder) -> None:
    assert found(folder) == []


@pytest.mark.parametrize(
    ("old", "new", "code", "line", "says"),
    [
        ("hosts: gpu[01-02]\n", 'hosts: "gpu[02-]"\n', "HPC1901", "gpu[02-]", "no set of nodes"),
        ("hosts: gpu[01-02]\n", "hosts: gpu[01-03]\n", "HPC1902", "gpu[01-03]", "hosts: gpu03"),
        ("switch: leaf1", "switch: leaf9", "HPC1903", "switch: leaf9", "switch: leaf9"),
        (
            "      - switch: leaf1\n",
            "      - {hosts: gpu02, u: 20, feeds: {a: 2, b: 2, c: 2}}\n      - switch: leaf1\n",
            "HPC1904",
            "hosts: gpu02",
            "gpu02 stands in this rack already, at unit 1",
        ),
        (
            "        u: 42\n",
            "        profile: dgx-h100\n        u: 42\n",
            "HPC1905",
            "profile: dgx-h100",
            "the catalogue has no switch dgx-h100",
        ),
        (
            "        u: 42\n",
            "        profile: qm8700\n        u: 42\n",
            "HPC1906",
            "profile: qm8700",
            "qm8700 is not what leaf1 is elsewhere: qm9700",
        ),
        (
            "        u: 42\n",
            "        u: 16\n",
            "HPC1907",
            "u: 16",
            "leaf1 (U16) and gpu02 (U9 to U16)",
        ),
        (
            "        u: 1\n",
            "        u: 28\n",
            "HPC1908",
            "u: 28",
            "gpu02 would reach up to unit 43",
        ),
        (
            "depth_mm: 1000",
            "depth_mm: 800",
            "HPC1909",
            "hosts: gpu[01-02]",
            "gpu[01-02]: 897.1 mm deep, and the rack r1 has 800 mm",
        ),
        (
            "max_weight_kg: 900",
            "max_weight_kg: 250",
            "HPC1910",
            "max_weight_kg",
            "weighs 275.7 kg, and it carries 250",
        ),
        ("{a: 1, b: 1}", "{a: 1, d: 1}", "HPC1911", "d: 1", "the rack r1 has no feed d"),
        (
            "{a: 2, b: 2, c: 2}",
            "{a: 3, b: 2, c: 2}",
            "HPC1912",
            "{a: 3",
            "each of gpu[01-02] has 6 power supplies, and 7 hang on the feeds",
        ),
        (
            "{a: 2, b: 2, c: 2}",
            "{a: 4, c: 2}",
            "HPC1913",
            "{a: 4",
            "gpu[01-02]: 2 of its power supplies are left without feed a, and it does not run",
        ),
        (
            "{a: 2, b: 2, c: 2}",
            "{a: 1, b: 1}",
            "HPC1913",
            "{a: 1, b: 1}",
            "gpu[01-02]: 2 of its power supplies hang on feeds, and it does not run with fewer",
        ),
        ("a: {kw: 12}", "a: {kw: 7}", "HPC1916", "a: {kw: 7}", "gives 7 kW, and 7.7 kW hang on it"),
        (
            "a: {kw: 12}",
            "a: {kw: 11}",
            "HPC1917",
            "a: {kw: 11}",
            "gives 11 kW, and 11.9 kW hang on it without feed b",
        ),
    ],
)
def test_what_cannot_be_is_refused(
    site: SiteFolder, old: str, new: str, code: str, line: str, says: str
) -> None:
    site.edit(RACKS, old, new)
    problems = [problem for problem in found(site) if problem.code == code]
    assert len(problems) == 1, found(site)
    (problem,) = problems
    assert says in problem.message
    assert problem.key.startswith("site_racks.r1.")
    assert problem.where is not None
    assert problem.where.path == site.path / RACKS
    assert problem.where.line == site.line(RACKS, line)
    assert problem.hint
    assert problem in site.problems(), "it is an error"


@pytest.mark.parametrize(
    ("old", "new", "code", "says"),
    [
        (
            "{a: 2, b: 2, c: 2}",
            "{a: 3, b: 3}",
            "HPC1914",
            "gpu[01-02]: 3 of its power supplies are left without feed a, and full power needs 4",
        ),
        (
            "{a: 1, b: 1}",
            "{a: 2}",
            "HPC1915",
            "all power supplies of leaf1 hang on one feed, with which they are lost",
        ),
        (
            "    profile: qm9700\n",
            "",
            "HPC1918",
            "leave out the height (taken for 1 U) of leaf1, the depth of leaf1, the weight of",
        ),
        (
            "        feeds: {a: 1, b: 1}\n",
            "",
            "HPC1918",
            "unknown: the sums of the rack r1 leave out the feeds of leaf1",
        ),
        ("hosts: gpu[01-02]", "hosts: gpu01", "HPC1919", "of gpu, gpu02 stands in no rack"),
        (
            "site_racks:\n",
            "  leaf2: {fabric: ib, profile: qm9700}\nsite_racks:\n",
            "HPC1919",
            "leaf2 stands in no rack, and other switches do",
        ),
    ],
)
def test_what_may_be_right_is_a_warning(
    site: SiteFolder, old: str, new: str, code: str, says: str
) -> None:
    for feed in "abc":
        site.edit(RACKS, f"{feed}: {{kw: 12}}", f"{feed}: {{kw: 40}}")
    site.edit(RACKS, old, new)
    (problem,) = found(site)
    assert (problem.code, says in problem.message) == (code, True), problem
    assert problem.where is not None
    assert problem not in site.problems()


def test_unknown_figures_matter_only_where_something_is_held_against_them(
    site: SiteFolder,
) -> None:
    site.edit(RACKS, "    profile: qm9700\n", "")
    site.edit(RACKS, "    depth_mm: 1000\n    max_weight_kg: 900\n", "")
    (problem,) = found(site)
    assert problem.message.endswith("the height (taken for 1 U) of leaf1, the power of leaf1")


def test_hosts_without_a_node_group_have_the_profile_of_their_entry(site: SiteFolder) -> None:
    site.edit(
        RACKS, "      - switch", "      - {hosts: head, u: 40, profile: ours}\n      - switch"
    )
    site.edit(RACKS, "u: 40, profile", "u: 40, feeds: {a: 1, b: 1}, profile")
    site.write(
        "hardware/ours.yml",
        "nodes:\n  ours:\n    title: Ours\n    rack_units: 2\n    depth_mm: 700\n"
        "    weight_kg: 20\n    max_power_w: 60\n    psu: {count: 2, needed_full: 1}\n",
    )
    assert found(site) == []
    site.edit(RACKS, "u: 40,", "u: 41,")
    assert [p.code for p in found(site)] == ["HPC1907"]


def test_one_host_in_two_racks_is_told_once_for_all_hosts(site: SiteFolder) -> None:
    site.edit(
        RACKS, "", "  r2:\n    units: 42\n    contents:\n      - {hosts: 'gpu[01-02]', u: 1}\n"
    )
    (problem,) = found(site)
    assert problem.message == "gpu[01-02] stand in the rack r1 already, at unit 1"
    assert problem.key == "site_racks.r2.contents[0].hosts"


def test_a_wrong_value_hides_the_sums_of_its_rack_only(site: SiteFolder) -> None:
    site.edit(RACKS, "        u: 42\n", "        u: top\n")
    site.edit(RACKS, "max_weight_kg: 900", "max_weight_kg: 1")
    site.edit(RACKS, "", "  r2:\n    units: 4\n    contents:\n      - {hosts: login, u: 5}\n")
    assert {p.code for p in found(site)} == {"HPC1908", "HPC1918"}
    assert any("site_racks.r1.contents[1].u" in p.message for p in site.problems())


def test_a_large_site_is_checked_quickly(site: SiteFolder) -> None:
    nodes = [f"n{number:04}: {{ansible_host: 10.8.0.1}}" for number in range(2000)]
    before = "          hosts:\n            gpu01"
    lines = "".join(f"            {node}\n" for node in nodes)
    site.edit("hosts.yml", before, before.replace("gpu01", f"{lines.strip()}\n            gpu01"))
    feeds = "{a: {kw: 30}, b: {kw: 30}, c: {kw: 30}}"
    racks = "".join(
        f"  r{first}:\n    units: 42\n    feeds: {feeds}\n    contents:\n"
        f"      - hosts: n[{first:04}-{first + 3:04}]\n        u: 1\n"
        "        feeds: {a: 2, b: 2, c: 2}\n"
        for first in range(0, 2000, 4)
    )
    site.edit(RACKS, "  r1:\n", racks + "  r1:\n")
    draft = Draft(
        site.path,
        resolve(site.path),
        read_sources(site.path),
        SiteKeys(name="mini"),
        catalogue=load_catalogue(),
    )
    assert check_keys(draft) == []
    begin = time.process_time()
    assert [problem for rule in RULES for problem in rule(draft)] == []
    assert time.process_time() - begin < 2


def test_example_of_the_page_is_valid(site: SiteFolder) -> None:
    text = DOC.read_text(encoding="utf-8")
    racks, hardware = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    site.write(RACKS, GOOD.partition("site_racks:\n")[0] + racks)
    site.write("hardware/ours.yml", hardware)
    assert found(site) == []
    assert "head" in racks
    site.edit(RACKS, "{a: 2, b: 2, c: 2}", "{a: 3, b: 3}")
    assert {p.code for p in found(site)} >= {"HPC1914"}
