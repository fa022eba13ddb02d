"""A verification while it runs, as `deploy` and `verify` show and end it."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from hpcsite.cli import console
from hpcsite.verify.engine import Check, Listener
from hpcsite.verify.results import Result, Status

_QUIET_ENDS = (signal.SIGTERM, signal.SIGHUP)
_STYLES = {
    Status.PASS: "green",
    Status.FAIL: "bold red",
    Status.SKIP: "yellow",
    Status.ERROR: "bold magenta",
}


class Verdicts:
    """A line a verdict; a reason that many checks share is told once."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}

    def line(self, result: Result) -> str:
        """Return a verdict in one line."""
        title, why = f"{result.suite}/{result.check}", result.reason
        first = self._told.setdefault(why, title)
        reason = f": as {first}" if why and first != title else f": {why}" if why else ""
        return f"{result.status:<5} {title} ({result.seconds:.1f} s){reason}"


class Lines:
    """Progress as plain lines, for a pipe or a log."""

    def __init__(self) -> None:
        self._verdicts = Verdicts()

    def planned(self, checks: Sequence[Check]) -> None:
        """Say how much there is to do."""
        console.say(f"{len(checks)} checks")

    def started(self, check: Check) -> None:
        """Say nothing: a line a verdict is enough."""

    def finished(self, result: Result) -> None:
        """One line a verdict."""
        console.say(self._verdicts.line(result))


class Live:
    """Progress on a terminal: checks done of total and what runs, verdicts scrolling above."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None)
        self._running: list[str] = []
        self._verdicts = Verdicts()

    def planned(self, checks: Sequence[Check]) -> None:
        """Set the total."""
        self._progress.update(self._task, total=len(checks))

    def started(self, check: Check) -> None:
        """Show a check as running."""
        self._running.append(check.title)
        self._show()

    def finished(self, result: Result) -> None:
        """Print a verdict, and count it."""
        self._running.remove(f"{result.suite}/{result.check}")
        line = self._verdicts.line(result)
        self._progress.console.print(line, style=_STYLES[result.status])
        self._progress.advance(self._task)
        self._show()

    def _show(self) -> None:
        self._progress.update(self._task, description=" ".join(self._running))


@contextmanager
def listener() -> Iterator[Listener]:
    """Live progress on a terminal, plain lines elsewhere; all on stderr."""
    screen = console.stderr()
    if not screen.is_terminal:
        yield Lines()
        return
    columns = (
        MofNCompleteColumn(),
        BarColumn(bar_width=20),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=screen, transient=True) as progress:
        yield Live(progress)


@contextmanager
def ended_like_interrupt() -> Iterator[None]:
    """SIGTERM and SIGHUP end a run as Ctrl-C does: no job is left.

    After the first of the three, SIGTERM and SIGHUP are not heard: whoever sends them again (a
    service manager, a terminal that closes after Ctrl-C) must not cut the clean-up short.
    """

    def interrupt(_: int, __: FrameType | None) -> None:
        for number in _QUIET_ENDS:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, *_QUIET_ENDS)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
