"""ansible-runner's event dictionaries → the few typed events that hpcsite works with."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from hpcsite.deploy.messages import changed_items, failure_message
from hpcsite.errors import Location

HostStatus = Literal["ok", "changed", "skipped", "failed", "unreachable"]

# CSI sequences (colours, cursor movement) of ECMA-48, with which Ansible dresses its output.
_CSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


@dataclass(frozen=True)
class PlayStarted:
    """A play begins; `layer` is the part of its name before the colon."""

    layer: str
    what: str


@dataclass(frozen=True)
class TaskStarted:
    """A task begins on all hosts of the play."""

    name: str
    where: Location | None


@dataclass(frozen=True)
class HostEvent:
    """A task ended on one host. `ignored`: it failed, and the play does not mind.

    `items`: of a loop, those that changed something. `hint`: what to do about a failure.
    `address`: that of an unreachable host, which stands in `message`.
    """

    host: str
    status: HostStatus
    task: str
    where: Location | None
    message: str = ""
    ignored: bool = False
    items: tuple[str, ...] = ()
    hint: str = ""
    address: str = ""


@dataclass(frozen=True)
class HostCounts:
    """Tasks of one host by how they ended, as Ansible counts them."""

    ok: int = 0
    changed: int = 0
    skipped: int = 0
    failed: int = 0
    unreachable: int = 0
    rescued: int = 0
    ignored: int = 0


@dataclass(frozen=True)
class Finished:
    """Ansible's own account at the end of a run."""

    hosts: dict[str, HostCounts] = field(default_factory=dict)


@dataclass(frozen=True)
class Output:
    """A piece of Ansible's output, without colours."""

    text: str


@dataclass(frozen=True)
class Diff:
    """What a task changes, or would change, in a file of one host."""

    host: str
    text: str


Event = PlayStarted | TaskStarted | HostEvent | Finished | Output | Diff

# Tasks whose message is for the person who deploys, though nothing failed.
NOTE_TASKS = (
    "Name the nodes that this run leaves out of Slurm",
    "Name the mounts that wait until nobody uses them",
    "Name what is left in Slurm's accounts though undeclared",
)

_HOST_STATUS: dict[str, HostStatus] = {
    "runner_on_ok": "ok",
    "runner_on_skipped": "skipped",
    "runner_on_failed": "failed",
    "runner_on_unreachable": "unreachable",
}


def parse_event(raw: dict[str, Any]) -> list[Event]:
    """Events in one dictionary of ansible-runner; unknown kinds give their output only."""
    kind = raw.get("event", "")
    data = raw.get("event_data") or {}
    found: list[Event] = []
    if kind == "playbook_on_play_start":
        found.append(play_of(str(data.get("name", ""))))
    elif kind == "playbook_on_task_start":
        found.append(TaskStarted(str(data.get("name", "")), _location(data)))
    elif kind in _HOST_STATUS:
        found.append(_host_event(_HOST_STATUS[kind], data))
    elif kind == "playbook_on_stats":
        found.append(_finished(data))
    text = plain_text(str(raw.get("stdout") or ""))
    if text.strip():
        found.append(Output(text))
        if kind == "runner_on_file_diff":
            found.append(Diff(str(data.get("host", "")), text.strip("\n")))
    return found


def play_of(name: str) -> PlayStarted:
    """Read a play's name, "<layer>: <what>"."""
    layer, _, what = name.partition(":")
    return PlayStarted(layer.strip(), what.strip())


def plain_text(text: str) -> str:
    """Text without terminal sequences and carriage returns."""
    return _CSI.sub("", text).replace("\r\n", "\n").replace("\r", "\n")


def _location(data: dict[str, Any]) -> Location | None:
    """Ansible's `task_path`, "/path/to/main.yml:12"."""
    path, _, line = str(data.get("task_path") or "").rpartition(":")
    return Location(Path(path), int(line)) if path and line.isdigit() else None


def _host_event(status: HostStatus, data: dict[str, Any]) -> HostEvent:
    result = data.get("res") or {}
    if status == "ok" and result.get("changed"):
        status = "changed"
    broken = status in {"failed", "unreachable"}
    task = str(data.get("task", ""))
    note = str(result.get("msg", "")) if task.endswith(NOTE_TASKS) and status == "ok" else ""
    return HostEvent(
        host=str(data.get("host", "")),
        status=status,
        task=task,
        where=_location(data),
        message=failure_message(result) if broken else note,
        ignored=bool(data.get("ignore_errors")),
        items=changed_items(result) if status == "changed" else (),
    )


def _finished(data: dict[str, Any]) -> Finished:
    def count(kind: str, host: str) -> int:
        return int((data.get(kind) or {}).get(host, 0))

    return Finished(
        {
            host: HostCounts(
                ok=count("ok", host),
                changed=count("changed", host),
                skipped=count("skipped", host),
                failed=count("failures", host),
                unreachable=count("dark", host),
                rescued=count("rescued", host),
                ignored=count("ignored", host),
            )
            for host in (data.get("processed") or {})
        }
    )
