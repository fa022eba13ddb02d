import io
import re
import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from hpcsite import report
from hpcsite.report import chart, words
from hpcsite.verify.results import (
    INTERRUPTED,
    Direction,
    Measurement,
    Property,
    Reference,
    Result,
    Run,
    Status,
    Summary,
    Variant,
)

STARTED = datetime(2026, 11, 30, 12, 9, 15, tzinfo=UTC)
LIMIT = Reference(value=0.5, unit="s", source="hpcsite's own limit")


def bandwidth(size: int, value: float) -> Measurement:
    return Measurement(
        name="bandwidth",
        value=value,
        unit="GB/s",
        direction=Direction.HIGHER,
        at={"message_bytes": size, "nodes": "gpu01,gpu02"},
    )


CLOCK = Measurement(
    name="clock_difference_max", value=0.8, unit="s", direction=Direction.LOWER, reference=LIMIT
)
RESULTS = (
    Result(
        suite="node",
        check="clocks",
        about="No clock is off.",
        nodes="gpu[01-02]",
        status=Status.FAIL,
        reason="gpu02 is off by <b>0.8 s</b> & more",
        measurements=(CLOCK,),
        commands=("date '+%s'",),
        raw=("raw/node.clocks/01-date.txt",),
    ),
    Result(
        suite="node",
        check="versions",
        nodes="gpu[01-02]",
        status=Status.PASS,
        properties=(
            Property(
                name="kernel",
                variants=(
                    Variant(value="6.12.57", nodes="gpu01"),
                    Variant(value="6.12.48", nodes="gpu02"),
                ),
            ),
        ),
    ),
    Result(suite="node", check="cuda", status=Status.SKIP, reason="no CUDA device"),
    Result(suite="mpi", check="a", status=Status.ERROR, reason="gpu02 is DOWN"),
    Result(suite="mpi", check="b", status=Status.ERROR, reason="gpu02 is DOWN"),
    Result(
        suite="mpi",
        check="pingpong",
        status=Status.PASS,
        measurements=(bandwidth(1024, 0.5), bandwidth(4 << 20, 12.5), bandwidth(65536, 4.0)),
    ),
)


def run_of(*results: Result, interrupted: bool = False) -> Run:
    return Run(
        hpcsite_version="0.1.0",
        run_id="20261130-120915-aaaa",
        site="lab",
        cluster="lab",
        user="alice",
        submit_host="login",
        suites=tuple(dict.fromkeys(result.suite for result in results)),
        started=STARTED,
        finished=STARTED + timedelta(seconds=20),
        interrupted=interrupted,
        results=results,
        summary=Summary.of(results),
    )


RUN = run_of(*RESULTS)


def as_text(run: Run, *, width: int = 100, terminal: bool = True) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=terminal, no_color=True)
    report.text(run, console)
    file = console.file
    assert isinstance(file, io.StringIO)
    return re.sub(r"\x1b\[[0-9;]*m", "", file.getvalue())


def test_the_terminal_shows_the_verdict_first_and_each_cause_once() -> None:
    lines = as_text(RUN).splitlines()
    assert lines[0].split()[:5] == ["FAIL", "1", "of", "6", "checks"]
    assert "FAIL node/clocks" in lines
    assert "ERROR mpi/a, mpi/b" in lines
    assert lines.count("  gpu02 is DOWN") == 1
    assert "skipped: no CUDA device" in as_text(RUN)


def test_one_cause_is_told_once_whatever_it_made_of_the_checks() -> None:
    run = run_of(
        Result(suite="node", check="state", status=Status.FAIL, reason="gpu02 is DOWN"),
        Result(suite="mpi", check="a", status=Status.ERROR, reason="gpu02 is DOWN"),
        Result(suite="mpi", check="b", status=Status.ERROR, reason="gpu02 is DOWN"),
    )
    text = as_text(run, terminal=False)
    assert text.count("gpu02 is DOWN") == 1
    assert "ERROR mpi/a, mpi/b\n  as node/state\n" in text


def test_the_terminal_shows_measurements_with_unit_and_reference() -> None:
    text = as_text(RUN)
    assert re.search(r"clock_difference_max +0\.8 s +≤ 0\.5 s", text)
    assert re.search(r"bandwidth +12\.5 GB/s +4 MiB, gpu01 to gpu02 +no reference applies", text)


def test_a_narrow_terminal_keeps_names_and_verdicts() -> None:
    text = as_text(RUN, width=80)
    assert "node/versions" in text
    assert all(len(line) <= 80 for line in text.splitlines() if "node/" in line)


ABOUT = "Proves " + "very " * 15 + "much."


def test_nothing_is_cut_in_a_pipe() -> None:
    run = run_of(Result(suite="s", check="c", about=ABOUT, status=Status.PASS))
    assert ABOUT in as_text(run, width=80, terminal=False)
    reason = "gpu02 is DOWN (" + "bad " * 60 + "fan)"
    run = run_of(Result(suite="s", check="c", status=Status.FAIL, reason=reason))
    assert f"  {reason}" in as_text(run, width=80, terminal=False).splitlines()


@pytest.mark.parametrize("width", [80, 118])
def test_a_terminal_wraps_and_cuts_nothing(width: int) -> None:
    nodes = ",".join(f"rack{i}-node[001-099]" for i in range(9))
    reason = "gpu02 is DOWN (" + "bad " * 60 + "fan)"
    run = run_of(
        Result(suite="slurm", check="every_node", about=ABOUT, nodes=nodes, status=Status.PASS),
        Result(suite="slurm", check="multi_node", status=Status.FAIL, reason=reason),
        Result(suite="node", check="x", status=Status.SKIP, reason=f"no {reason}"),
        Result(suite="node", check="y", status=Status.PASS, reason=f"noted: {reason}"),
        Result(suite="node", check="z", status=Status.PASS, measurements=(bandwidth(1024, 0.5),)),
    )
    text = as_text(run, width=width)
    assert "…" not in text
    assert max(len(line) for line in text.splitlines()) <= width
    squeezed = re.sub(r"\s+", "", text)
    for whole in (reason, f"no {reason}", f"noted: {reason}"):
        assert re.sub(r"\s+", "", whole) in squeezed
    # The columns of a wrapped row alternate, so its words are looked for.
    assert text.count("rack") == 9
    assert len(re.findall(r"\bvery\b", text)) == 15


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (RUN, "1 of 6 checks failed, 2 could not be run."),
        (run_of(*RESULTS[:2]), "1 of 2 checks failed."),
        (run_of(*RESULTS[1:3]), "All is well: 1 checks passed, 1 skipped."),
        (run_of(*RESULTS[3:]), "2 of 3 checks could not be run; the others passed."),
        (run_of(RESULTS[2]), "No check was executed; nothing is proved."),
        (run_of(RESULTS[1], interrupted=True), "The run was interrupted; nothing is proved."),
    ],
)
def test_headlines(run: Run, said: str) -> None:
    assert words.headline(run) == said


def test_what_an_interrupt_ended_is_no_trouble_of_the_site() -> None:
    stopped = Result(suite="s", check="c", status=Status.ERROR, reason=INTERRUPTED)
    assert words.troubles(run_of(stopped, RESULTS[3]))[0].checks == "mpi/a"
    assert len(words.troubles(run_of(stopped, RESULTS[3]))) == 1


def test_the_page_needs_nothing_else_and_escapes_what_tools_print() -> None:
    page = report.html(RUN)
    assert not re.search(r"(?i)<script|https?://|@import|url\(", page)
    assert "gpu02 is off by &lt;b&gt;0.8 s&lt;/b&gt; &amp; more" in page
    assert page.index('class="verdict"') < page.index("What is wrong") < page.index("Suite node")
    assert 'href="raw/node.clocks/01-date.txt"' in page
    assert 'href="file:///run/raw/' in report.html(RUN, "file:///run/")


def test_the_page_shows_drift_and_bandwidth() -> None:
    page = report.html(RUN)
    assert re.search(r'class="odd">6\.12\.48</span> <span class="nodes">gpu02', page)
    assert page.count("<svg") == 1
    assert "4 MiB: 12.5 GB/s" in page


def test_a_page_without_measurements_or_troubles_is_whole() -> None:
    page = report.html(run_of(RESULTS[2], RESULTS[1]))
    assert "What is wrong" not in page
    assert "<svg" not in page
    assert page.rstrip().endswith("</html>")


def test_a_chart_is_well_formed_and_in_order() -> None:
    (curve,) = chart.curves(RUN)
    assert [size for size, _ in curve.points] == [1024, 65536, 4 << 20]
    root = ET.fromstring(chart.svg(curve))  # noqa: S314 - our own text
    heights = [float(dot.attrib["cy"]) for dot in root.iter("circle")]
    assert heights == sorted(heights, reverse=True)
    assert all(0 <= height <= chart.HEIGHT for height in heights)


def test_junit_says_what_failed_and_what_could_not_run() -> None:
    root = ET.fromstring(report.junit(RUN))  # noqa: S314 - our own text
    suites = {suite.attrib["name"]: suite for suite in root}
    assert suites["lab.node"].attrib | {"failures": "1", "skipped": "1", "tests": "3"} == (
        suites["lab.node"].attrib
    )
    assert suites["lab.mpi"].attrib["errors"] == "2"
    (failure,) = root.iter("failure")
    assert failure.attrib["message"] == RESULTS[0].reason


def test_junit_survives_what_xml_cannot_hold() -> None:
    broken = Result(suite="s", check="c", status=Status.FAIL, reason="a\x00b\x1b[1m")
    root = ET.fromstring(report.junit(run_of(broken)))  # noqa: S314 - our own text
    (failure,) = root.iter("failure")
    assert failure.attrib["message"] == "a?b?[1m"


@pytest.mark.parametrize(
    ("value", "said"),
    [(0, "0"), (4.5678, "4.57"), (0.00123, "0.00123"), (12873.4, "12873"), (-3.0, "-3")],
)
def test_numbers(value: float, said: str) -> None:
    assert words.number(value) == said


def test_sizes() -> None:
    assert [words.size(n) for n in (0, 1, 1024, 4 << 20, 8 << 30)] == [
        "0 B",
        "1 B",
        "1 KiB",
        "4 MiB",
        "8 GiB",
    ]
