"""`hpcsite verify`: run verification suites and say what they found."""

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from hpcsite import report
from hpcsite.cli import console
from hpcsite.errors import UsageError
from hpcsite.site.load import load_site
from hpcsite.site.record import last_site_path
from hpcsite.verify import store
from hpcsite.verify.context import Options
from hpcsite.verify.engine import Check, Listener
from hpcsite.verify.results import Result, Run, Status
from hpcsite.verify.runner import run_suites
from hpcsite.verify.suites import DEFAULT_SUITES, SUITES, nearest

_STYLES = {
    Status.PASS: "green",
    Status.FAIL: "bold red",
    Status.SKIP: "yellow",
    Status.ERROR: "bold magenta",
}


class Lines:
    """Progress as plain lines, for a pipe or a log."""

    def planned(self, checks: Sequence[Check]) -> None:
        """Say how much there is to do."""
        console.say(f"{len(checks)} checks")

    def started(self, check: Check) -> None:
        """Say nothing: a line a verdict is enough."""

    def finished(self, result: Result) -> None:
        """One line a verdict."""
        console.say(verdict_line(result))


class Live:
    """Progress on a terminal: checks done of total and what runs, verdicts scrolling above."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None)
        self._running: list[str] = []

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
        self._progress.console.print(verdict_line(result), style=_STYLES[result.status])
        self._progress.advance(self._task)
        self._show()

    def _show(self) -> None:
        self._progress.update(self._task, description=" ".join(self._running))


def verdict_line(result: Result) -> str:
    """Return a verdict in one line."""
    reason = f": {result.reason}" if result.reason else ""
    return f"{result.status:<5} {result.suite}/{result.check} ({result.seconds:.1f} s){reason}"


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


def split_words(words: Sequence[str]) -> tuple[Path | None, list[str]]:
    """Return an inventory, if the first word is one, and the suites.

    A word with a slash, or the name of something that exists, is an inventory. Raises
    `UsageError` for a word that is neither that nor a suite.
    """
    inventory: Path | None = None
    suites = []
    for position, word in enumerate(words):
        if word in SUITES:
            suites.append(word)
        elif position == 0 and ("/" in word or Path(word).exists()):
            inventory = Path(word)
        else:
            raise UsageError(
                f"{word} is neither a suite nor an inventory folder", hint=nearest(word, SUITES)
            )
    return inventory, suites


def print_list() -> None:
    """Print all suites and their checks."""
    screen = console.stdout()
    for suite, checks in SUITES.items():
        note = "" if suite in DEFAULT_SUITES else "  (only when named; run after a deploy)"
        screen.print(f"{suite}{note}", markup=False)
        for check in checks:
            screen.print(f"  {check.name:<14} {check.about}", markup=False)


@contextmanager
def ended_like_interrupt() -> Iterator[None]:
    """SIGTERM and SIGHUP end a run as Ctrl-C does: no job is left."""

    def interrupt(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {
        number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _write(run: Run, html: Path | None, junit: Path | None) -> Path:
    """Store what is rendered from a run beside it, and where the user wants it."""
    folder = store.folder_of(run)
    xml = report.junit(run)
    store.save_text(folder / "report.html", report.html(run))
    store.save_text(folder / "junit.xml", xml)
    if html:
        store.save_text(html.absolute(), report.html(run, f"{folder.as_uri()}/"))
    if junit:
        store.save_text(junit.absolute(), xml)
    return folder


@click.command(short_help="Prove that the cluster works.")
@click.argument("words", metavar="[INVENTORY] [SUITE]...", nargs=-1)
@click.option("--list", "list_only", is_flag=True, help="List suites and checks, run nothing.")
@click.option(
    "--check", "checks", multiple=True, metavar="NAME", help="Only this check; repeatable."
)
@click.option("--json", "as_json", is_flag=True, help="Print the run as JSON on stdout.")
@click.option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), help="Also write the page here."
)
@click.option(
    "--junit", type=click.Path(path_type=Path, dir_okay=False), help="Also write JUnit here."
)
@click.option("--partition", help="Submit to this partition; only its nodes are verified.")
@click.option("--account", help="Submit under this account.")
@click.option("--qos", help="Submit under this QOS.")
@click.option("--reservation", help="Submit into this reservation.")
@click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(1, 86400),
    default=30.0,
    show_default=True,
    help="Seconds that a job may wait for nodes that others use.",
)
def command(
    words: tuple[str, ...],
    *,
    list_only: bool,
    checks: tuple[str, ...],
    as_json: bool,
    html: Path | None,
    junit: Path | None,
    partition: str | None,
    account: str | None,
    qos: str | None,
    reservation: str | None,
    wait_s: float,
) -> int:
    """Prove that the cluster works: run the verification suites.

    Without INVENTORY, the site that was deployed last; without SUITE, node, slurm and mpi. Checks
    run as the site's ordinary user (site_verify_user), through Slurm, from a login node. Each ends
    as PASS, FAIL, SKIP or ERROR; what could not be measured is an ERROR.

    \b
    hpcsite verify
    hpcsite verify inventory/lab slurm
    hpcsite verify --check gpu_fill --json

    Exit codes: 0 all passed, 1 a check failed, 4 a check or all could not be run, 130 interrupted.
    """
    if list_only:
        print_list()
        return 0
    for path in (html, junit):
        if path and not path.absolute().parent.is_dir():
            raise UsageError(f"there is no folder {path.parent}", hint="make it first")
    inventory, suites = split_words(words)
    site = load_site(inventory or last_site_path())
    options = Options(partition, account, qos, reservation, wait_s)
    with ended_like_interrupt(), listener() as progress:
        run = run_suites(site, suites, checks=checks, options=options, listener=progress)
    folder = _write(run, html, junit)
    if as_json:
        sys.stdout.write(run.model_dump_json(indent=2) + "\n")
    else:
        screen = console.stdout()
        report.text(run, screen)
        console.say(f"page  {folder / 'report.html'}\nraw   {folder / 'raw'}")
    return int(run.exit_code)
