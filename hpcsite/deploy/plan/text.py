"""A plan → what a person reads: counts first, then each change with its nodes. Pure."""

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.text import Text

from hpcsite.deploy.plan.model import (
    AccountChange,
    DaemonChange,
    FileChange,
    Item,
    JobAtRisk,
    NodeNeed,
    OtherChange,
    Plan,
)
from hpcsite.deploy.recap import failure_texts
from hpcsite.site.names import fold

# Of a longer diff the end is left out; the JSON has all of it.
_MAX_DIFF_LINES = 60
_MAX_JOBS = 20
_MAX_NAMES = 20
_ACTIONS = {
    "start": "starts",
    "restart": "restarts",
    "reconfigure": "reads its configuration again, without a restart",
    "reload": "reads its tables again, without a restart",
    "enable": "will start at boot",
}
_SYSTEMS = {"linux": "on the machines", "slurm": "in Slurm's accounting"}
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def plan_text(plan: Plan, *, folder: Path) -> Text:
    """Write a whole plan; files below `folder` are named relative to it."""
    text = _headline(plan)
    if not plan.summary.empty:
        text.append_text(_summary(plan))
        for title, lines in _sections(plan):
            if lines:
                text.append(f"\n{title}\n", style="bold")
                for line in lines:
                    text.append_text(line)
    if plan.failures:
        text.append("\n")
        text.append_text(failure_texts(plan.failures, folder))
    for hint in _hints(plan):
        text.append("" if text.plain.endswith("\n\n") else "\n")
        text.append("hint: ", style="cyan")
        text.append(f"{hint}\n")
    return text


def _headline(plan: Plan) -> Text:
    text = Text(f"plan of site {plan.site}: ")
    if plan.status == "ok" and plan.summary.empty:
        text.append("no changes", style="bold green")
    elif plan.status == "ok":
        text.append("a deploy would change this", style="bold yellow")
    else:
        text.append("NOT WHOLE", style="bold red")
        out = fold(host for failure in plan.failures for host in failure.hosts)
        text.append(f": {plan.reason or f'nothing is known of {out}'}")
    text.append("\n")
    return text


def _summary(plan: Plan) -> Text:
    """One line a kind, also for those of which there is nothing."""
    counted = plan.summary
    jobs = fold_users(plan.jobs_at_risk)
    rows = [
        ("files", counted.files, "change", _nodes(plan.files)),
        ("packages", counted.packages, "to install, upgrade or remove", _nodes(plan.packages)),
        ("daemons", counted.daemons, "start, restart or read anew", _nodes(plan.daemons)),
        ("nodes", counted.nodes, "need a drain or a reboot", _nodes(plan.nodes)),
        ("jobs", counted.jobs_at_risk, "at risk", jobs),
        ("accounts", counted.accounts, "change", _nodes(plan.accounts)),
        ("other", counted.other, "change", _nodes(plan.other)),
        ("unknown", counted.unknown, "until another step is done", _nodes(plan.unknown)),
    ]
    text = Text()
    for kind, number, what, nodes in rows:
        if number:
            text.append(f"  {kind:9} {number:>3} {what}")
            text.append(f" ({nodes})\n", style="dim")
        elif kind not in {"other", "unknown"}:
            text.append(f"  {kind:9}   0\n", style="dim")
    return text


def _sections(plan: Plan) -> list[tuple[str, list[Text]]]:
    return [
        ("files", [_file(item) for item in plan.files]),
        ("packages", [_line(i, f"{i.action}: {', '.join(i.packages)}") for i in plan.packages]),
        ("daemons", [_daemon(item) for item in plan.daemons]),
        ("nodes", [_need(item) for item in plan.nodes]),
        ("running jobs at risk", _jobs(plan.jobs_at_risk)),
        ("accounts", [_account(item) for item in plan.accounts]),
        ("other", [_other(item) for item in plan.other]),
        ("unknown", [_line(item, f"{item.what}: until {item.until}") for item in plan.unknown]),
    ]


def _nodes(items: Iterable[Item]) -> str:
    return fold(host for item in items for host in item.hosts)


def fold_users(jobs: Sequence[JobAtRisk]) -> str:
    """Name the users of jobs, each once."""
    return ", ".join(sorted({job.user for job in jobs}))


def _line(item: Item, what: str) -> Text:
    text = Text("  ")
    text.append(item.nodes, style="bold")
    text.append(f"  {what}\n")
    return text


def _file(item: FileChange) -> Text:
    change = "" if item.change == "content" else f" is {item.change}"
    if item.change == "attributes":
        change = ": owner, mode or the like"
    text = _line(item, f"{item.path}{change}{f' ({item.note})' if item.note else ''}")
    text.append_text(_diff(item.diff))
    return text


def _diff(diff: str) -> Text:
    text, lines = Text(), diff.splitlines()
    for line in lines[:_MAX_DIFF_LINES]:
        text.append(f"      {line}\n", style=_COLOURS.get(line[:1], ""))
    if (rest := len(lines) - _MAX_DIFF_LINES) > 0:
        text.append(f"      … {rest} more lines, see --json\n", style="dim")
    return text


def _daemon(item: DaemonChange) -> Text:
    because = f": {', '.join(item.because)}" if item.because else ""
    return _line(item, f"{item.daemon} {_ACTIONS[item.action]}{because}")


def _need(item: NodeNeed) -> Text:
    who = "deploy does it" if item.by_deploy else "deploy does not do it"
    return _line(item, f"{item.label} ({who}): {'; '.join(item.because)}")


def _jobs(jobs: Sequence[JobAtRisk]) -> list[Text]:
    lines = [
        Text(f"  job {job.id} of {job.user} on {job.nodes}: {'; '.join(job.because)}\n")
        for job in jobs[:_MAX_JOBS]
    ]
    if (rest := len(jobs) - _MAX_JOBS) > 0:
        lines.append(Text(f"  … and {rest} more, see --json\n"))
    return lines


def _account(item: AccountChange) -> Text:
    named = ", ".join(item.names[:_MAX_NAMES])
    if (rest := len(item.names) - _MAX_NAMES) > 0:
        named += f" and {rest} more"
    what = f"{item.what}: {named}" if named else item.what
    text = _line(item, f"{what} ({_SYSTEMS[item.system]})")
    text.append_text(_diff(item.diff))
    return text


def _other(item: OtherChange) -> Text:
    details = f": {', '.join(item.details)}" if item.details else ""
    return _line(item, f"{item.layer}: {item.task}{details}")


def _hints(plan: Plan) -> list[str]:
    hints = [failure.hint for failure in plan.failures]
    if any(not need.by_deploy for need in plan.nodes):
        hints.append(
            "deploy neither drains nor reboots nodes for this: drain them "
            "(`scontrol update NodeName=… State=DRAIN Reason=…`), wait for their jobs, and reboot"
        )
    if plan.status != "ok":
        again = f"hpcsite plan {shlex.quote(str(plan.inventory))}"
        hints.append(f"the log is {plan.log}; when the cause is gone: {again}")
    return list(dict.fromkeys(filter(None, hints)))
