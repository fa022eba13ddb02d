import io
import os
import signal
from collections.abc import Callable

import pytest
from rich.console import Console

from hpcsite.deploy.events import Diff, parse_event
from hpcsite.deploy.interrupts import on_interrupt
from hpcsite.deploy.progress import LiveProgress, PlainProgress, VerboseProgress, make_progress
from hpcsite.deploy.tally import Tally
from tests.unit.deploy.conftest import recorded

ESCAPE = "\x1b"


def terminal(stream: io.StringIO) -> Console:
    return Console(
        file=stream, force_terminal=True, width=100, height=40, _environ={"TERM": "xterm"}
    )


def pipe(stream: io.StringIO) -> Console:
    return Console(file=stream, soft_wrap=True, highlight=False, _environ={})


def shown(make: Callable[[io.StringIO], Console], recording: str, *, verbosity: int = 0) -> str:
    stream = io.StringIO()
    tally = Tally()
    with make_progress(make(stream), pipe(io.StringIO()), verbosity=verbosity) as progress:
        for raw in recorded(recording):
            for event in parse_event(raw):
                tally.add(event)
                progress.event(event, tally)
        progress.poll()
        progress.note("a note")
    return stream.getvalue()


@pytest.mark.parametrize(
    ("make", "verbosity", "kind"),
    [(pipe, 0, PlainProgress), (pipe, 1, VerboseProgress), (terminal, 0, LiveProgress)],
)
def test_the_display_suits_where_it_goes(
    make: Callable[[io.StringIO], Console], verbosity: int, kind: type
) -> None:
    progress = make_progress(make(io.StringIO()), pipe(io.StringIO()), verbosity=verbosity)
    assert type(progress) is kind


def test_a_dumb_terminal_gets_plain_lines() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"})
    assert type(make_progress(console, pipe(io.StringIO()), verbosity=0)) is PlainProgress


@pytest.mark.parametrize(
    ("messages", "data", "diff_in_data"),
    [(pipe, pipe, True), (terminal, pipe, True), (terminal, terminal, False)],
)
def test_a_diff_is_data_but_never_beside_a_live_table(
    messages: Callable[[io.StringIO], Console],
    data: Callable[[io.StringIO], Console],
    diff_in_data: bool,
) -> None:
    out, error = io.StringIO(), io.StringIO()
    with make_progress(messages(error), data(out), verbosity=0) as progress:
        progress.event(Diff("gpu01", "+ a new line"), Tally())
    assert ("+ a new line" in out.getvalue()) is diff_in_data
    assert ("+ a new line" in error.getvalue()) is not diff_in_data


def test_a_pipe_gets_plain_lines_with_plays_and_failures() -> None:
    text = shown(pipe, "failures")
    assert ESCAPE not in text
    lines = [line.partition(" ")[2] for line in text.splitlines()]
    assert lines[:4] == [
        *("preflight: hosts", "base: names", "scheduler: slurmctld", "scheduler: slurmd"),
    ]
    assert "gpu01 failed: Assert: gpu01 has 8 GPUs, 9 are declared" in lines
    assert lines[-1] == "a note"


def test_a_rescued_failure_is_not_announced() -> None:
    assert "head failed" not in shown(pipe, "failures")


def test_a_failure_is_announced_once() -> None:
    assert shown(pipe, "controller_failed").count("gpu02 unreachable") == 1


def test_verbose_is_ansibles_own_output() -> None:
    text = shown(pipe, "failures", verbosity=1)
    assert ESCAPE not in text
    assert "PLAY RECAP" in text


def test_a_terminal_gets_its_cursor_back() -> None:
    text = shown(terminal, "failures")
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")
    assert "2 out" in text
    assert "gpu[01-02],head,login" in text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_call_the_action_and_are_given_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    calls: list[int] = []
    with on_interrupt(lambda: calls.append(1)):
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
    assert calls == [1, 1]
    assert signal.getsignal(number) == before
