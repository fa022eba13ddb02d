"""What a person sees: data on stdout, messages on stderr, NO_COLOR respected."""

import sys
import traceback
from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from hpcsite.errors import Problem


def stdout() -> Console:
    """Console for data."""
    return Console(file=sys.stdout, soft_wrap=True, highlight=False)


def stderr() -> Console:
    """Console for progress and messages."""
    return Console(file=sys.stderr, soft_wrap=True, highlight=False)


def say(message: str, *, style: str = "") -> None:
    """Print one message on stderr; markup in it is not interpreted."""
    stderr().print(Text(message, style=style))


def print_problems(problems: Iterable[Problem], *, label: str = "error") -> None:
    """Print each on stderr: what and where, a blank line, a hint; a blank line between two."""
    console = stderr()
    style = "bold red" if label == "error" else "bold yellow"
    for number, problem in enumerate(problems):
        text = Text("\n" if number else "")
        text.append(f"{label}: ", style=style)
        if problem.where:
            text.append(f"{problem.where}: ", style="bold")
        text.append(problem.message)
        if problem.hint:
            text.append("\n\nhint: ", style="cyan")
            text.append(problem.hint)
        console.print(text)


def print_bug(bug: BaseException, *, debug: bool) -> None:
    """Say that hpcsite itself is at fault, and how to tell its makers."""
    if debug:
        traceback.print_exception(bug)
    kind = type(bug).__name__
    print_problems(
        [
            Problem(
                f"a bug in hpcsite: {kind}: {bug}",
                hint="run again with `hpcsite --debug …` and report the traceback",
            )
        ]
    )
