"""What a person sees while a deploy runs: a live table on a terminal, plain lines in a pipe."""

import time
from datetime import datetime
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from hpcsite.deploy.events import Diff, Event, Finished, Output, PlayStarted
from hpcsite.deploy.tally import HostFailure, LayerTally, Tally
from hpcsite.site.names import fold

_REFRESH_S = 0.12
# Beyond this a layer's nodes are folded anew only when it ends: folding 2,000 names is not free.
_MAX_NODES_WIDTH = 40


class Progress(Protocol):
    """Is told what happens. `tally` has taken the event in already."""

    def __enter__(self) -> Self:
        """Begin to show."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the terminal as it was."""

    def event(self, event: Event, tally: Tally) -> None:
        """One event."""

    def note(self, message: str) -> None:
        """Show a message of the deploy itself."""

    def poll(self) -> None:
        """Redraw; called about once a second, events or not."""


def make_progress(console: Console, data: Console, *, verbosity: int) -> Progress:
    """Choose what suits a console: live on a terminal, else plain; Ansible's output with -v.

    Diffs go to `data`.
    """
    if verbosity:
        return VerboseProgress(console, data)
    live = console.is_terminal and not console.is_dumb_terminal
    if not live:
        return PlainProgress(console, data)
    # What is written to a terminal beside a live table destroys it.
    return LiveProgress(console, console if data.is_terminal else data)


class PlainProgress:
    """One line, with the time, for each play and each host that drops out."""

    def __init__(self, console: Console, data: Console) -> None:
        self._console = console
        self._data = data
        self._announced: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing to restore."""

    def event(self, event: Event, tally: Tally) -> None:
        """Print plays and failures."""
        self._announce(event, tally)
        if isinstance(event, PlayStarted):
            self.note(f"{event.layer}: {event.what}")
        elif isinstance(event, Diff):
            self.diff(event)

    def note(self, message: str) -> None:
        """Print one line."""
        now = datetime.now().astimezone().strftime("%H:%M:%S")
        self._console.print(Text(f"{now} {message}"))

    def diff(self, diff: Diff) -> None:
        """Print a diff, with the host that it is of; Ansible makes one with --diff only."""
        self._data.print(Text(f"{diff.host}:\n{diff.text}\n"))

    def poll(self) -> None:
        """Nothing moves in a pipe."""

    def _announce(self, event: Event, tally: Tally) -> None:
        """Name the hosts that dropped out; not before their play ends, for it may rescue them."""
        if not isinstance(event, PlayStarted | Finished):
            return
        for host, failure in tally.failures().items():
            if host not in self._announced:
                self._announced.add(host)
                self.note(_failure_line(failure))


class VerboseProgress(PlainProgress):
    """Ansible's own output, as it comes."""

    def event(self, event: Event, tally: Tally) -> None:
        """Print Ansible's output."""
        if isinstance(event, Output):
            self._console.print(Text(event.text.rstrip("\n")))


class LiveProgress(PlainProgress):
    """A table of layers that follows the run; failures scroll above it."""

    def __init__(self, console: Console, data: Console) -> None:
        super().__init__(console, data)
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._tally = Tally()
        self._started = time.monotonic()
        self._drawn = 0.0

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the table; the cursor is visible again."""
        self._live.stop()
        if self._tally.layers:
            self._console.print(self._table(running=False))

    def event(self, event: Event, tally: Tally) -> None:
        """Redraw, not more often than an eye can follow."""
        self._tally = tally
        if isinstance(event, Diff):
            self.diff(event)
        self._announce(event, tally)
        if time.monotonic() - self._drawn >= _REFRESH_S:
            self.poll()

    def poll(self) -> None:
        """Redraw."""
        self._drawn = time.monotonic()
        self._live.update(self._table(running=True), refresh=True)

    def _table(self, *, running: bool) -> RenderableType:
        table = Table.grid(padding=(0, 2))
        for layer in self._tally.layers.values():
            now = running and layer is self._tally.layer
            table.add_row(_mark(layer, running=now), *_layer_cells(layer))
        return Group(table, self._now()) if running else table

    def _now(self) -> Text:
        text = Text(f"{time.monotonic() - self._started:.0f} s", overflow="ellipsis", no_wrap=True)
        if task := self._tally.task:
            text.append(f"  {self._tally.play.what}: {task.name}", style="dim")
        return text


def _mark(layer: LayerTally, *, running: bool) -> Text:
    if layer.out:
        return Text("✗", style="bold red")
    return Text("…", style="cyan") if running else Text("✓", style="green")


def _layer_cells(layer: LayerTally) -> list[Text]:
    nodes = fold(layer.hosts)
    if len(nodes) > _MAX_NODES_WIDTH:
        nodes = f"{len(layer.hosts)} nodes"
    counts = Text(nodes)
    for label, style, number in (
        ("changed", "yellow", len(layer.changed)),
        ("out", "bold red", len(layer.out)),
    ):
        if number:
            counts.append(f"  {number} {label}", style=style)
    return [Text(layer.name, style="bold"), counts]


def _failure_line(failure: HostFailure) -> str:
    event = failure.event
    first, *_ = event.message.splitlines()
    return f"{event.host} {event.status}: {event.task}: {first}"
