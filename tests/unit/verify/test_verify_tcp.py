"""TCP between pairs: the program for real over loopback, its reader, and whom the checks blame."""

import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from importlib.resources import files
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsite.site.model import NodeGroup, Site
from hpcsite.verify.cluster import Cluster
from hpcsite.verify.parsers import UnreadableError
from hpcsite.verify.parsers.tcp_pair import TcpPair, read_tcp_pair
from hpcsite.verify.results import Certainty, CulpritKind, Result
from hpcsite.verify.suites import SUITES
from tests.unit.verify.fakeslurm import FakeSlurm, make_site

PROGRAM = str(files("hpcsite.verify") / "programs" / "tcp_pair.py")
TCP_BW, TCP_LAT = SUITES["tcp"]
NODES = ("gpu01", "gpu02", "gpu03", "gpu04")


def start(node: str, *, job: int = 4242) -> subprocess.Popen[str]:
    """Start the program as Slurm would on a node; gpu01 is the side that listens."""
    return subprocess.Popen(
        [sys.executable, PROGRAM, "gpu01", "127.0.0.1", "0.05"],
        env={**os.environ, "SLURM_JOB_ID": str(job), "SLURMD_NODENAME": node},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_program_measures_both_ways_over_loopback() -> None:
    server, client = start("gpu01"), start("gpu02")
    said, complaints = client.communicate(timeout=60)
    assert (client.returncode, complaints) == (0, "")
    assert server.communicate(timeout=10) == ("", "")
    assert server.returncode == 0
    found = read_tcp_pair(f"1: {said}")
    assert 0.1 < found.latency_us < 100_000
    assert found.slower_gbit_s == min(found.to_gbit_s, found.from_gbit_s) > 0.001


def test_two_jobs_on_a_node_keep_to_their_own_partner() -> None:
    # Both take the same ports: 600 jobs lie between them.
    sides = [start(node, job=job) for job in (4300, 4900) for node in ("gpu01", "gpu02")]
    for side in sides:
        _, complaints = side.communicate(timeout=60)
        assert (side.returncode, complaints) == (0, "")


def figures(to: float = 94.0, back: float = 93.0, latency: float = 12.0) -> dict[str, float]:
    return {"latency_us": latency, "to_gbit_s": to, "from_gbit_s": back}


def test_figures_are_read_from_labelled_output() -> None:
    text = f"0: srun: some warning\n1: {json.dumps(figures())}\n"
    assert read_tcp_pair(text) == TcpPair(12.0, 94.0, 93.0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no figures"),
        ('0: {"error": "timed out"}\n1: {"error": "no connection"}\n', "timed out; no connection"),
        ('1: {"latency_us": 1}\n', "no figures of a pair"),
        (f"1: {json.dumps(figures(to=0.0))}\n", "cannot be"),
        ('1: {"latency_us": NaN, "to_gbit_s": 1, "from_gbit_s": 1}\n', "cannot be"),
        ("1: {broken}\n", "no JSON"),
        (f"1: {json.dumps(figures())}\n" * 2, "no figures"),
    ],
)
def test_what_is_no_measurement_is_never_a_number(text: str, says: str) -> None:
    with pytest.raises(UnreadableError, match=re.escape(says)):
        read_tcp_pair(text)


@given(st.text() | st.text().map(lambda text: f"1: {{{text}}}"))
def test_whatever_is_printed_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(UnreadableError):
        read_tcp_pair(text)


Said = dict[frozenset[str], dict[str, Any] | str]


def four() -> Site:
    return make_site(gpu03={"slurm_compute", "gpu"}, gpu04={"slurm_compute", "gpu"})


def answer(special: Said, again: Said | None = None) -> Callable[[list[str]], str]:
    """Answer pairs with usual figures, but for special ones; `again`: those of the second try."""

    def run(argv: list[str]) -> str:
        words = argv[argv.index("pairs") + 1 :]
        asked = [(words[at], words[at + 1]) for at in range(0, len(words), 4)]
        chosen = special if len(asked) > 1 or again is None else again
        said = []
        for pair in asked:
            what = chosen.get(frozenset(pair), figures())
            if isinstance(what, str):
                said.append(f"@ {','.join(pair)} 1\n! {what}\n")
            else:
                said.append(f"@ {','.join(pair)} 0\n> 1: {json.dumps(what)}\n")
        return "".join(said)

    return run


@pytest.fixture
def verdict(run_check: Callable[..., Result]) -> Callable[..., Result]:
    def run(special: Said, again: Said | None = None, check: Any = TCP_BW) -> Result:  # noqa: ANN401
        slurm = FakeSlurm(more=NODES[2:], pairs=answer(special, again))
        return run_check(check, slurm, four())

    return run


def of_node(node: str, what: dict[str, Any] | str) -> Said:
    return {frozenset(pair): what for pair in combinations(NODES, 2) if node in pair}


def test_healthy_pairs_pass_and_each_is_measured(verdict: Callable[..., Result]) -> None:
    result = verdict({})
    assert result.status == "PASS"
    assert len(result.measurements) == 6
    met = {frozenset(str(one.at["nodes"]).split(",")) for one in result.measurements}
    assert met == {frozenset(pair) for pair in combinations(NODES, 2)}


def test_slow_node_is_the_culprit(verdict: Callable[..., Result]) -> None:
    result = verdict(of_node("gpu03", figures(to=9.0)), of_node("gpu03", figures(to=9.2)))
    assert result.status == "FAIL"
    (culprit,) = result.culprits
    assert (culprit.kind, culprit.name) == (CulpritKind.NODE, "gpu03")
    assert culprit.certainty is Certainty.CERTAIN
    assert "gpu03" in result.remedy
    assert "node gpu03 (certain): 3 of 3 pairs with gpu03 reached 9.2 Gb/s" in result.reason


def test_slow_link_is_the_culprit(verdict: Callable[..., Result]) -> None:
    slow: Said = {frozenset(("gpu02", "gpu04")): figures(back=4.0)}
    (culprit,) = verdict(slow, slow).culprits
    assert (culprit.kind, culprit.name) == (CulpritKind.LINK, "gpu02 - gpu04")


def test_pair_that_was_slow_once_is_not_blamed(verdict: Callable[..., Result]) -> None:
    slow: Said = {frozenset(("gpu02", "gpu04")): figures(back=4.0)}
    result = verdict(slow, {})
    assert (result.status, result.culprits) == ("PASS", ())


def test_pair_without_traffic_fails(verdict: Callable[..., Result]) -> None:
    dead: Said = {frozenset(("gpu01", "gpu02")): {"error": "no connection to 10.0.0.1: timed out"}}
    result = verdict(dead, dead)
    assert result.status == "FAIL"
    assert "no connection" in result.reason
    assert result.culprits[0].name == "gpu01 - gpu02"


def test_pair_that_did_not_run_is_no_pass(verdict: Callable[..., Result]) -> None:
    broken: Said = {frozenset(("gpu01", "gpu02")): "srun: error: something broke"}
    result = verdict(broken, broken)
    assert result.status == "ERROR"
    assert "something broke" in result.reason


def test_late_answers_are_a_fault_of_their_own(verdict: Callable[..., Result]) -> None:
    late = of_node("gpu02", figures(latency=900.0))
    assert verdict(late, late, check=TCP_BW).status == "PASS"
    result = verdict(late, late, check=TCP_LAT)
    assert result.culprits[0].name == "gpu02"


def test_late_pair_is_tried_again_too(verdict: Callable[..., Result]) -> None:
    late = of_node("gpu02", figures(latency=900.0))
    assert verdict(late, {}, check=TCP_LAT).status == "PASS"


def test_dead_fabric_condemns_no_node(verdict: Callable[..., Result]) -> None:
    dead: Said = {frozenset(pair): {"error": "timed out"} for pair in combinations(NODES, 2)}
    result = verdict(dead, dead)
    assert result.status == "FAIL"
    assert {one.kind for one in result.culprits} == {CulpritKind.LINK}
    assert {one.certainty for one in result.culprits} == {Certainty.POSSIBLE}


def test_slower_group_is_held_against_itself(
    verdict: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes with 25 Gb/s beside nodes with 100 Gb/s are as they should be."""

    def group(_: Cluster, node: str) -> tuple[str, NodeGroup]:
        return ("slow" if node in NODES[2:] else "fast", NodeGroup())

    slower: Said = of_node("gpu03", figures(23.0, 23.0)) | of_node("gpu04", figures(23.0, 23.0))
    assert verdict(slower, slower).status == "FAIL"
    monkeypatch.setattr(Cluster, "group_of", group)
    result = verdict(slower, slower)
    assert (result.status, result.culprits) == ("PASS", ())


def test_command_is_one_that_a_person_could_paste(verdict: Callable[..., Result]) -> None:
    commands = verdict({}).commands
    assert any("srun" in command for command in commands)
    assert all(shlex.split(command) for command in commands)
