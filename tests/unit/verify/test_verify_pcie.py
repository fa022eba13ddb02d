from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsite.site.catalogue.load import load_catalogue
from hpcsite.site.catalogue.models import Source, Whole
from hpcsite.site.model import Site
from hpcsite.verify.parsers.facts import read_facts
from hpcsite.verify.parsers.pcie import read_device
from hpcsite.verify.suites.node import CHECKS
from hpcsite.verify.suites.node_hardware import less_memory, link_faults, profile_faults
from tests.unit.verify.fakeslurm import SURVEY, FakeSlurm, Runner, context_for, make_site

GOLDEN = Path(__file__).parents[2] / "golden" / "tools" / "pcie"
DEVICES = (GOLDEN / "devices.txt").read_text().splitlines()
BY_NAME = {check.name: check for check in CHECKS}
PCIE, HARDWARE = BY_NAME["pcie"], BY_NAME["hardware"]
GOOD = "pci=0000:1b:00.0 0x030200 0x10de 16 16 16 2.5 32.0 32.0"


def site_of(**group: object) -> Site:
    site = make_site(gpu03={"slurm_compute", "gpu"})
    changed = site.keys.node_groups["gpu"].model_copy(update=group)
    keys = site.keys.model_copy(update={"node_groups": {"gpu": changed}})
    return site.model_copy(update={"keys": keys})


def test_links_are_held_against_what_both_ends_can_have() -> None:
    devices = [found for line in DEVICES if (found := read_device(line))]
    assert len(devices) == len(DEVICES)
    # An adapter in a slot of less is what was built, and a GPU's low speed is idleness.
    assert link_faults(devices) == [
        "GPU 0000:43:00.0 runs at x8, it and its slot can have x16",
        "drive 0000:2a:00.0 runs at PCIe 3, it and its slot can have PCIe 4",
    ]


def test_a_slot_of_less_is_no_fault_of_the_link() -> None:
    found = read_device("0000:19:00.0 0x020000 0x15b3 8 16 8 16.0 32.0 16.0")
    assert found is not None
    assert (found.width_best, found.generation_best) == (8, 4)
    assert link_faults([found]) == []


@pytest.mark.parametrize("line", (GOLDEN / "none.txt").read_text().splitlines())
def test_what_tells_no_link_is_no_device(line: str) -> None:
    assert read_device(line) is None


@given(st.text())
def test_any_line_is_read(text: str) -> None:
    read_device(text)


@given(st.lists(st.sampled_from(["0x030200", "16", "63", "-", "٣", "32.0", "x"]), max_size=12))
def test_any_words_are_read(words: list[str]) -> None:
    read_device(" ".join(words))


def surveys(**odd: str) -> dict[str, str]:
    return {
        name: SURVEY.format(name=name).replace("cpus=2", "cpus=8") + odd.get(name, GOOD) + "\n"
        for name in ("gpu01", "gpu02")
    }


def two() -> Site:
    site = site_of(virtual=False)
    hosts = {name: host for name, host in site.hosts.items() if name != "gpu03"}
    return site.model_copy(update={"hosts": hosts})


def test_a_lab_has_no_links_of_its_own(run_check: Runner) -> None:
    result = run_check(PCIE, FakeSlurm(surveys=surveys()))
    assert result.status == "SKIP"
    assert "virtual" in result.reason


def test_links_that_are_whole_pass(run_check: Runner) -> None:
    result = run_check(PCIE, FakeSlurm(surveys=surveys()), two())
    assert (result.status, result.reason) == ("PASS", "")
    assert [prop.name for prop in result.properties] == ["PCIe of GPUs"]


def test_a_narrow_link_names_its_node_and_card(run_check: Runner) -> None:
    narrow = GOOD.replace(" 16 16 16", " 8 16 16")
    result = run_check(PCIE, FakeSlurm(surveys=surveys(gpu02=narrow)), two())
    assert result.status == "FAIL"
    assert "gpu02: GPU 0000:1b:00.0 runs at x8, it and its slot can have x16" in result.reason
    assert result.culprits[0].name == "gpu02"
    assert result.culprits[0].certainty == "certain"


def test_links_that_no_node_tells_are_an_error(run_check: Runner) -> None:
    result = run_check(PCIE, FakeSlurm(surveys=surveys(gpu01="", gpu02="")), two())
    assert (result.status, result.reason) == (
        "ERROR",
        "no node tells the PCIe link of a GPU, adapter or drive",
    )


def test_a_node_with_less_than_its_profile() -> None:
    known = load_catalogue().nodes["dgx-h100"]
    two, cores, drives = (Whole(value=value, source=Source(title="test")) for value in (2, 56, 10))
    profile = known.model_copy(
        update={
            "sockets": two,
            "cores_per_socket": cores,
            "threads_per_core": two,
            "nvme": known.nvme.model_copy(update={"count": drives}),
        }
    )
    whole = (
        "sockets=2\ncores=112\ncpus=224\n"
        + "pci=0000:1b:00.0 0x030200 0x10de 16 16 16 2.5 32.0 32.0\n" * 8
        + "hca=MT_0000000838 28.43.2026\n" * 10
    )
    good = read_facts("n", whole + "nvme=A 1\n" * 10)
    assert profile_faults(profile, good) == []
    bad = whole.replace("16 16 16 2.5 32.0 32.0", "8 16 8 2.5 16.0 32.0", 1)
    faults = profile_faults(profile, read_facts("n", bad.replace("cores=112", "cores=56")))
    assert "GPU 0000:1b:00.0 can have x8, x16 promised" in faults
    assert "GPU 0000:1b:00.0 can have PCIe 4, PCIe 5 promised" in faults
    assert "112 cores, the node has 56" in faults
    assert "10 NVMe drives, the node has 0" in faults
    few = read_facts(
        "n", whole.replace("hca=MT_0000000838 28.43.2026\n", "", 3) + "nvme=A 1\n" * 20
    )
    assert profile_faults(profile, few) == ["8 ports of adapters, the node has 7"]


def test_a_missing_gpu_device_names_the_node(run_check: Runner) -> None:
    hosts = ("gpu01", "gpu02")
    less = {
        name: SURVEY.format(name=name).replace("cpus=2", "cpus=8")
        + "".join(f"device=/dev/nvidia{i}\n" for i in range(8))
        for name in hosts
    }
    result = run_check(HARDWARE, FakeSlurm(surveys=less), two())
    assert result.status == "PASS", result.reason
    less["gpu02"] = less["gpu02"].replace("device=/dev/nvidia7\n", "")
    result = run_check(HARDWARE, FakeSlurm(surveys=less), two())
    assert [culprit.name for culprit in result.culprits] == ["gpu02"]
    assert result.culprits[0].because == "8 GPUs, /dev/nvidia* has 7"


def test_less_memory_than_its_peers_names_the_node(tmp_path: Path) -> None:
    hosts = ("gpu01", "gpu02", "gpu03")
    context = context_for(tmp_path, FakeSlurm(), site_of(virtual=False))
    facts = {
        name: read_facts(name, f"memory_kib={2000000 if name == 'gpu02' else 2060000}")
        for name in hosts
    }
    assert less_memory(context, facts) == {"gpu02": "1953 MiB of memory, its peers have more"}
    assert less_memory(context, dict.fromkeys(hosts, facts["gpu01"])) == {}
