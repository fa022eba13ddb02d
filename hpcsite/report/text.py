"""A run for the terminal: the verdict, what is wrong, every check, every measurement."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hpcsite.report import words
from hpcsite.verify.results import Run, Status

_STYLES = {
    Status.PASS: "green",
    Status.FAIL: "bold red",
    Status.SKIP: "yellow",
    Status.ERROR: "bold magenta",
}
_PIPE_WIDTH = 160


def text(run: Run, console: Console) -> None:
    """Print a run."""
    verdict = run.summary.verdict
    head = Text()
    head.append(f" {verdict} ", style=f"{_STYLES[verdict]} reverse")
    head.append(f"  {words.headline(run)}", style="bold")
    head.append(f"  site {run.site}, {run.seconds:.1f} s, run {run.run_id}", style="dim")
    console.print(head)
    for trouble in words.troubles(run):
        line = Text()
        line.append(f"\n{trouble.status} ", style=_STYLES[trouble.status])
        line.append(trouble.checks, style="bold")
        line.append(f"\n  {trouble.reason}")
        console.print(line)
    # A pipe has no width of its own; there, nothing is cut.
    if not console.is_terminal:
        console.width = _PIPE_WIDTH
    console.print()
    console.print(_results(run, expand=console.is_terminal), soft_wrap=False)
    if any(result.measurements for result in run.results):
        console.print()
        console.print(_measurements(run), soft_wrap=False)


def _results(run: Run, *, expand: bool) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", expand=expand)
    for column in ("", "check", "nodes"):
        table.add_column(column, no_wrap=column != "nodes")
    table.add_column("s", justify="right")
    table.add_column("what it proves", no_wrap=True, overflow="ellipsis", ratio=1)
    for result in run.results:
        skipped = result.status is Status.SKIP
        table.add_row(
            Text(result.status, style=_STYLES[result.status]),
            Text(f"{result.suite}/{result.check}"),
            Text(result.nodes),
            Text(f"{result.seconds:.1f}"),
            Text(f"skipped: {result.reason}" if skipped else result.about),
        )
    return table


def _measurements(run: Run) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("measurement", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("at")
    table.add_column("reference")
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
