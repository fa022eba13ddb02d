"""An outcome → what a person reads at the end. Pure."""

import shlex
from pathlib import Path

from rich.text import Text

from hpcsite.deploy.changes import Change
from hpcsite.deploy.failures import Failure
from hpcsite.deploy.outcome import HostSummary, Outcome
from hpcsite.deploy.tally import HOMES_TASK
from hpcsite.site.names import fold

# What is beyond these is in the log.
_MAX_FAILURES, _MAX_CHANGES, _MAX_ITEMS = 10, 30, 5
_HEADLINES = {
    "ok": ("deployed", "bold green"),
    "failed": ("FAILED", "bold red"),
    "could-not-run": ("COULD NOT RUN", "bold red"),
    "interrupted": ("INTERRUPTED", "bold yellow"),
}


def recap(outcome: Outcome, *, folder: Path) -> Text:
    """Write the whole recap; files below `folder` are named relative to it."""
    text = Text()
    text.append_text(failure_texts(outcome.failures, folder))
    text.append_text(_changed(outcome))
    text.append_text(_counts(outcome.hosts))
    text.append_text(_headline(outcome))
    text.append(f"log: {outcome.log}\n")
    for hint in _hints(outcome):
        text.append("\n")
        text.append("hint: ", style="cyan")
        text.append(f"{hint}\n")
    return text


def failure_texts(failures: tuple[Failure, ...], folder: Path) -> Text:
    """Write what failed where."""
    text = Text()
    for failure in failures[:_MAX_FAILURES]:
        text.append_text(_failure(failure, folder))
    if rest := failures[_MAX_FAILURES:]:
        nodes = fold(host for failure in rest for host in failure.hosts)
        text.append(f"… and {len(rest)} more failures, on {nodes}: see the log\n\n")
    return text


def _changed(outcome: Outcome) -> Text:
    """List the tasks that changed something."""
    text = Text()
    if not outcome.changes:
        return text
    text.append("would change:\n" if outcome.check else "changed:\n", style="yellow")
    for change in outcome.changes[:_MAX_CHANGES]:
        text.append(f"  {change.layer}: {_task(change)} ({change.nodes})\n")
    if (rest := len(outcome.changes) - _MAX_CHANGES) > 0:
        text.append(f"  … and {rest} more, see the log\n")
    text.append("\n")
    return text


def _task(change: Change) -> str:
    """Name a task, and the items where it was a loop."""
    if not change.items:
        return change.task
    named = ", ".join(change.items[:_MAX_ITEMS])
    rest = len(change.items) - _MAX_ITEMS
    return f"{change.task}: {named}" + (f" and {rest} more" if rest > 0 else "")


def _failure(failure: Failure, folder: Path) -> Text:
    text = Text()
    text.append(failure.nodes, style="bold red")
    verb = "cannot be reached" if failure.kind == "unreachable" else "failed"
    text.append(f" {verb} in {failure.layer or 'an unknown layer'}: ")
    text.append(f"{failure.task}\n", style="bold")
    if failure.file:
        text.append(f"  {_relative(failure.file, folder)}:{failure.line}\n", style="dim")
    for line in failure.message.splitlines():
        text.append(f"  {line}\n")
    text.append("\n")
    return text


def _relative(file: str, folder: Path) -> str:
    path = Path(file)
    below = folder != Path(folder.anchor) and path.is_relative_to(folder)
    return str(path.relative_to(folder)) if below else file


def _counts(hosts: tuple[HostSummary, ...]) -> Text:
    """One line for all hosts with the same counts."""
    alike: dict[tuple[int, ...], list[str]] = {}
    for host in hosts:
        key = (host.ok, host.changed, host.skipped, host.failed, host.unreachable)
        alike.setdefault(key, []).append(host.name)
    rows = [(fold(names), key) for key, names in alike.items()]
    width = max((len(nodes) for nodes, _ in rows), default=0)
    text = Text()
    for nodes, (ok, changed, skipped, failed, unreachable) in sorted(rows):
        text.append(f"{nodes:{width}}  ok={ok:<4} ")
        text.append(f"changed={changed:<4} ", style="yellow" if changed else "")
        text.append(f"skipped={skipped:<4} ")
        text.append(f"failed={failed} ", style="bold red" if failed else "")
        text.append(f"unreachable={unreachable}\n", style="bold red" if unreachable else "")
    if rows:
        text.append("\n")
    return text


def _headline(outcome: Outcome) -> Text:
    word, style = _HEADLINES[outcome.status]
    text = Text(f"site {outcome.site}: ")
    if outcome.check and outcome.status == "ok":
        word = "checked, nothing was changed"
    text.append(word, style=style)
    text.append(f" in {outcome.duration_s:.0f} s")
    if outcome.status == "ok":
        text.append(f", {_changes(outcome)}")
    if outcome.reason:
        text.append(f": {outcome.reason}")
    text.append("\n")
    if left_out := _left_out(outcome):
        text.append(f"left out: {left_out}; {_others(outcome)}\n")
    if outcome.untouched:
        text.append(f"not touched: {fold(outcome.untouched)}\n")
    return text


def _changes(outcome: Outcome) -> str:
    would = "would change" if outcome.check else "changed"
    if not outcome.changed:
        return f"nothing {would}"
    nodes = fold(host.name for host in outcome.hosts if host.changed)
    return f"{outcome.changed} task{'s' if outcome.changed != 1 else ''} {would} on {nodes}"


def _left_out(outcome: Outcome) -> str:
    if outcome.status != "failed" or outcome.reason:
        return ""
    broken = (failure for failure in outcome.failures if not failure.task.endswith(HOMES_TASK))
    return fold(host for failure in broken for host in failure.hosts)


def _others(outcome: Outcome) -> str:
    if outcome.ended_early:
        return f"the other nodes are not finished: the run ended {outcome.ended_early}"
    return f"the other nodes are {'checked' if outcome.check else 'deployed'}"


def _hints(outcome: Outcome) -> list[str]:
    """Say what to do about each cause, then how to go on."""
    hints = [*(failure.hint for failure in outcome.failures), _next(outcome)]
    return list(dict.fromkeys(filter(None, hints)))


def _next(outcome: Outcome) -> str:
    again = f"hpcsite deploy {shlex.quote(str(outcome.inventory))}"
    if outcome.status == "interrupted":
        return f"a deploy can be run again at any time: {again}"
    if (nodes := _left_out(outcome)) and not outcome.ended_early:
        return f"when the cause on the nodes is gone: {again} --limit '{nodes}'"
    if outcome.failures:
        return f"when the cause is gone: {again}"
    return ""
