"""Suite `scaling` on what programs said in a lab of two nodes, with other speeds put in."""

import contextlib
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsite.site.model import Site
from hpcsite.verify.parsers import UnreadableError
from hpcsite.verify.parsers.steps import read_steps
from hpcsite.verify.results import Measurement, Result
from hpcsite.verify.suites.scaling import CHECKS
from tests.unit.verify.fakeslurm import FakeSlurm, Runner, make_site
from tests.unit.verify.test_verify_training import lab, slurm

(WEAK,) = CHECKS
TOOLS = Path(__file__).parents[2] / "golden/tools"
TRAINED = {
    1: (TOOLS / "training/ddp-gloo-2.6-one-node.txt").read_text(),
    2: (TOOLS / "training/ddp-gloo-2.6.txt").read_text(),
}
STEPPED = {count: (TOOLS / f"scaling/mpi-{count}.txt").read_text() for count in (1, 2)}
NONE = "> @ no torch: none"


def real_site() -> Site:
    """Nodes without GPUs and with hardware of their own."""
    site = make_site()
    group = site.keys.node_groups["gpu"].model_copy(update={"gpus": None, "virtual": False})
    keys = site.keys.model_copy(update={"node_groups": {"gpu": group}})
    return site.model_copy(update={"keys": keys})


def fake(said: dict[int, str], torch: str = "") -> FakeSlurm:
    made = slurm("", torch) if torch else slurm("")
    del made.answers["--kill-on-bad-exit=1"]
    made.answers |= {f"--nodes={count}": text for count, text in said.items()}
    return made


def trained(times: float) -> dict[int, str]:
    """Two nodes that do so many times as much as one does."""
    one = re.sub(r'"samples_s":[\d.]+', '"samples_s":100.0', TRAINED[1])
    return {1: one, 2: re.sub(r'"samples_s":[\d.]+', f'"samples_s":{100 * times}', TRAINED[2])}


def named(result: Result) -> dict[str, Measurement]:
    """Measurements of the most nodes, by name."""
    return {one.name: one for one in result.measurements}


@pytest.mark.parametrize(
    ("times", "status", "said"),
    [
        (1.9, "PASS", "training: 2 nodes do 1.90 times as much as one (95%): good"),
        (1.6, "PASS", "(80%), 10 of 48 node-hours a day are lost: fair"),
        (1.2, "FAIL", "1.20 times as much as one (60%), 19 of 48 node-hours a day are lost: waste"),
    ],
)
def test_two_nodes_are_judged(run_check: Runner, times: float, status: str, said: str) -> None:
    result = run_check(WEAK, fake(trained(times)), real_site())
    assert (result.status, said in result.reason) == (status, True), result.reason
    found = named(result)
    assert found["speed_up"].value == pytest.approx(times)
    assert found["efficiency"].value == pytest.approx(50 * times)
    assert found["efficiency"].meets is (status == "PASS")
    assert found["lost"].value == pytest.approx(48 * (1 - times / 2))
    assert found["work"].at["node_count"] == 2
    assert found["work_expected"].value > 0
    assert bool(result.remedy) is (status == "FAIL")


def test_a_lab_is_measured_and_not_judged(run_check: Runner) -> None:
    result = run_check(WEAK, fake(trained(0.9)), lab())
    assert result.status == "PASS"
    assert "not judged, since the lab's nodes share one computer" in result.reason
    assert named(result)["efficiency"].reference is None
    assert "lost" not in named(result)


def test_without_torch_an_mpi_program_is_run(run_check: Runner) -> None:
    slow = fake(STEPPED, NONE)
    slow.answers["mpicc"] = "folder=/tmp/hpcsite-run\n"
    result = run_check(WEAK, slow, real_site())
    assert result.status == "FAIL"
    assert result.reason.startswith("2 nodes do 0.03 times as much as one (1%)")
    assert named(result)["work"].unit == "steps/s"
    assert named(result)["work"].value == pytest.approx(4 / 0.522798028, rel=1e-3)


@pytest.mark.parametrize("text", ["", STEPPED[2].replace("errors=0", "errors=1"), STEPPED[1]])
def test_a_program_that_says_something_else_is_an_error(run_check: Runner, text: str) -> None:
    broken = fake(STEPPED | {2: text}, NONE)
    broken.answers["mpicc"] = "folder=/tmp/hpcsite-run\n"
    result = run_check(WEAK, broken, real_site())
    assert result.status == "ERROR"
    assert result.reason.startswith("on gpu[01-02]: ")


def test_training_that_fails_is_an_error(run_check: Runner) -> None:
    broken = fake(trained(2))
    broken.answers["--nodes=2"] = (1, "", "RuntimeError: boom\n")
    result = run_check(WEAK, broken, real_site())
    assert result.status == "ERROR"
    assert "on gpu[01-02]: training ended with 1: RuntimeError: boom" in result.reason


def test_neither_torch_nor_a_compiler_is_a_skip(run_check: Runner) -> None:
    lacking = fake({}, NONE)
    lacking.answers["mpicc"] = "missing\n"
    result = run_check(WEAK, lacking, real_site())
    assert result.status == "SKIP"
    assert "no torch: none" in result.reason
    assert "no mpicc on login" in result.reason


def test_one_node_is_a_skip(run_check: Runner) -> None:
    site = make_site(hosts=("head", "login", "gpu01"))
    assert run_check(WEAK, fake(trained(2)), site).status == "SKIP"


@pytest.mark.parametrize("prefix", ["", "0: ", "[1,0]<stdout>:"])
def test_prefixes_are_read_around(prefix: str) -> None:
    text = "".join(f"{prefix}{line}\n" for line in STEPPED[2].splitlines())
    assert read_steps(f"WARNING x\n{text}") == read_steps(STEPPED[2])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("step_s=0.5", "step_s=nan #", "figures: step_s"),
        ("step_s=0.522798028", "step_s=nan", "step_s=nan"),
        ("allreduce 4096 0.0", "allreduce 4096 -0.0", "allreduce 4096 -0.0"),
        ("ranks=4\n", "", "figures: ranks"),
        ("ranks=4", "ranks=1e400", "ranks=1e400"),
    ],
)
def test_figures_that_cannot_be_name_their_line(old: str, new: str, said: str) -> None:
    with pytest.raises(UnreadableError, match=re.escape(said)):
        read_steps(STEPPED[2].replace(old, new))


@given(st.integers(0, len(STEPPED[2]) - 1), st.characters(), st.text())
def test_any_text_is_read_or_unreadable(place: int, character: str, text: str) -> None:
    mutated = STEPPED[2][:place] + character + STEPPED[2][place + 1 :]
    for each in (text, mutated, STEPPED[2][:place]):
        with contextlib.suppress(UnreadableError):
            read_steps(each)
