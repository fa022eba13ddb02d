from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsite.verify.parsers.facts import UNKNOWN, Facts, Net, read_facts, told

GOLDEN = Path(__file__).parents[2] / "golden" / "tools" / "survey"


def facts(name: str) -> Facts:
    return read_facts(name, (GOLDEN / f"{name}.txt").read_text("utf-8"))


def test_a_node_of_today() -> None:
    found = facts("dgx")
    expected = {
        "slurm": "25.11.8",
        "munge": "0.5.15",
        "nvidia_driver": "580.65.06",
        "fabric_manager": "580.65.06",
        "dcgm": "4.4.0",
        "cuda": "13.0.0",
        "nccl": "2.27.7",
        "ofed": "24.10-0.7.0",
        "mpi": "Open MPI 5.0.8",
        "ucx": "1.19.0",
        "runtime.apptainer": "1.4.1",
        "runtime.docker": "28.2.2",
        "runtime.enroot": "3.5.0",
        "runtime.nvidia-ctk": "1.17.8",
        "transparent_hugepages": "madvise",
        "model name": "Intel(R) Xeon(R) Platinum 8480C",
    }
    assert {key: found.values[key] for key in expected} == expected
    assert found.devices == ("/dev/nvidia0", "/dev/nvidia1")
    assert found.nets[1] == Net("ibp24s0", "10.2.0.21", 4092, 400000)
    assert found.parts["hca"] == {"MT_0000000838 28.43.2026": 2, "MT_0000000642 22.43.2026": 1}
    assert found.parts["nvme"] == {"SAMSUNG MZQL23T8HCLS-00A07 GDC7302Q": 2}
    assert found.number("cpus") == 224


def test_a_node_of_long_ago() -> None:
    found = facts("old")
    assert found.values["slurm"] == "22.05.8"
    assert found.values["cuda"] == "11.3"
    assert found.values["ofed"] == "5.8-4.1.5.0"
    assert found.values["mpi"] == "Intel MPI 2021.11"
    assert found.values["ucx"] == "1.12.1"
    assert found.values["runtime.singularity"] == "3.8.7-1.el8"
    # A speed that the kernel does not tell is no speed; a line without one is not whole.
    assert found.nets == (Net("eth0", "192.168.1.5", 1500, 0),)


def test_what_tells_no_version_is_unknown_never_a_number() -> None:
    found = facts("broken")
    assert "slurm" not in found.values
    assert {found.values[key] for key in ("munge", "cuda", "nccl")} == {UNKNOWN}
    assert found.values["mpi"] == "MPICH 4.1.2"
    assert found.number("memory_kib") == 0
    assert found.nets == ()


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    read_facts("x", text).number("cpus")


@given(
    st.sampled_from(sorted(GOLDEN.glob("*.txt"))), st.integers(0), st.text(max_size=5), st.data()
)
def test_any_mutation_is_read(path: Path, place: int, put: str, data: st.DataObject) -> None:
    text = path.read_text("utf-8")
    at = place % len(text)
    cut = data.draw(st.integers(0, 40))
    read_facts("x", text[:at] + put + text[at + cut :])


@pytest.mark.parametrize("key", ["slurm", "munge", "mpi", "cuda", "runtime.podman", "ofed"])
@given(text=st.text())
def test_any_words_of_a_tool(key: str, text: str) -> None:
    assert told(key, text)
