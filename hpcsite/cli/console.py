"""What a person sees: data on stdout, messages on stderr, NO_COLOR respected."""

import sys
import traceback
from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from hpcsite.errors import HpcsiteError, InvalidSiteError, Problem


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
        if problem.code:
            text.append(f" [{problem.code}]", style="dim")
        if problem.hint:
            text.append("\n\nhint: ", style="cyan")
            text.append(problem.hint)
        console.print(text)


def print_warnings(problems: Iterable[Problem]) -> None:
    """Print a site's warnings on stderr, less those that it accepts: a code is explained."""
    warnings = [problem for problem in problems if not problem.acknowledged]
    print_problems(warnings, label="warning")
    _say_more(warnings)


def print_error(error: HpcsiteError) -> None:
    """Print all that an error has to say; the warnings of a wrong site come before its mistakes."""
    warnings = error.warnings if isinstance(error, InvalidSiteError) else ()
    shown = [problem for problem in warnings if not problem.acknowledged]
    print_problems(shown, label="warning")
    if shown:
        say("")
    print_problems(error.problems)
    _say_more([*shown, *error.problems])


def _say_more(problems: Iterable[Problem]) -> None:
    """Say which command tells more, where any problem has a code."""
    codes = {problem.code for problem in problems if problem.code}
    if codes:
        code = codes.pop() if len(codes) == 1 else "CODE"
        say(f"\n`hpcsite explain {code}` tells more")


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
