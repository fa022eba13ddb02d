"""A run for the terminal: the verdict, what is wrong, every check, every measurement."""

from textwrap import fill, indent

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hpcsite.report import words
from hpcsite.verify.results import Result, Run, Status

_STYLES = {
    Status.PASS: "green",
    Status.FAIL: "bold red",
    Status.SKIP: "yellow",
    Status.ERROR: "bold magenta",
}
_PIPE_WIDTH = 160
_NODES_WIDTH = 24


def text(run: Run, console: Console) -> None:
    """Print a run. Nothing is cut: a terminal gets it wrapped, a pipe whole lines where it can."""
    piped = not console.is_terminal
    verdict = run.summary.verdict
    head = Text()
    head.append(f" {verdict} ", style=f"{_STYLES[verdict]} reverse")
    head.append(f"  {words.headline(run)}", style="bold")
    head.append(f"  site {run.site}, {run.seconds:.1f} s, run {run.run_id}", style="dim")
    console.print(head, soft_wrap=piped)
    shown: dict[str, str] = {}
    for trouble in words.troubles(run):
        line = Text()
        line.append(f"\n{trouble.status} ", style=_STYLES[trouble.status])
        line.append(trouble.checks, style="bold")
        console.print(line, soft_wrap=piped)
        # A node that is down fails the check of its state, and is why others could not be run.
        said = f"as {shown[trouble.reason]}" if trouble.reason in shown else trouble.reason
        shown.setdefault(trouble.reason, trouble.first)
        reason = said if piped else _wrapped(said, console.width - 2)
        console.print(Text(indent(reason, "  ")), soft_wrap=True)
    # A pipe has no width of its own.
    if piped:
        console.width = _PIPE_WIDTH
    console.print()
    console.print(_results(run, expand=not piped), soft_wrap=False)
    if any(result.measurements for result in run.results):
        console.print()
        console.print(_measurements(run), soft_wrap=False)


def _wrapped(words: str, width: int) -> str:
    return fill(words, max(width, 1), break_on_hyphens=False)


def _results(run: Run, *, expand: bool) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", expand=expand)
    for column in ("", "check"):
        table.add_column(column, no_wrap=True)
    table.add_column("nodes", overflow="fold", max_width=_NODES_WIDTH)
    table.add_column("s", justify="right")
    table.add_column("what it proves", overflow="fold", ratio=1)
    for result in run.results:
        table.add_row(
            Text(result.status, style=_STYLES[result.status]),
            Text(f"{result.suite}/{result.check}"),
            Text(result.nodes),
            Text(f"{result.seconds:.1f}"),
            Text(_said(result)),
        )
    return table


def _said(result: Result) -> str:
    """Say what a check proves and what was noted; what is wrong stands above the table."""
    if result.status is Status.SKIP:
        return f"skipped: {result.reason}"
    noted = result.status is Status.PASS and result.reason
    return f"{result.about} {result.reason}." if noted else result.about


def _measurements(run: Run) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("measurement", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("at", overflow="fold")
    table.add_column("reference", overflow="fold")
    for result in run.results:
        for measured in result.measurements:
            style = {True: "green", False: "bold red", None: ""}[measured.meets]
            table.add_row(
                Text(measured.name),
                Text(f"{words.number(measured.value)} {measured.unit}", style=style),
                Text(words.conditions(measured)),
                Text(words.reference(measured), style="dim"),
            )
    return table
