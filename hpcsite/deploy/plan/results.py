"""ansible-runner's events → results, one a task, host and item of a loop.

They come from hpcsite's own callback (plugins/callback/hpcsite_events.py), which adds to each what
ansible-runner leaves out.
"""

from dataclasses import dataclass, field
from typing import Any

from hpcsite.deploy.events import play_of


@dataclass(frozen=True)
class Result:
    """What a task said on one host. `about` are its arguments that hold no secret."""

    host: str
    layer: str
    role: str
    task: str
    module: str
    changed: bool
    values: dict[str, Any] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def censored(self) -> bool:
        """Whether the task hides what it does (no_log)."""
        return "censored" in self.values

    @property
    def path(self) -> str:
        """The file that it is about."""
        for name in ("dest", "path"):
            if found := self.about.get(name) or self.values.get(name):
                return str(found)
        return ""

    @property
    def item(self) -> str:
        """Label of the loop's item; empty without a loop."""
        label = self.values.get("_ansible_item_label", self.values.get("item", ""))
        return str(label.get("name", "")) if isinstance(label, dict) else str(label)


@dataclass(frozen=True)
class Skip:
    """A task that was skipped on a host: by which condition, or what its module said."""

    host: str
    layer: str
    role: str
    task: str
    module: str
    condition: str
    message: str


class Reader:
    """Reads events in order. Of a loop, the items count and not the summary behind them."""

    def __init__(self) -> None:
        self._layer = ""
        self._looped: set[tuple[str, str]] = set()

    def read(self, raw: dict[str, Any]) -> Result | Skip | None:
        """Read one event; None for one that says nothing about a host."""
        kind, data = raw.get("event"), raw.get("event_data") or {}
        if kind == "playbook_on_play_start":
            self._layer = play_of(str(data.get("name", ""))).layer
        task = (str(data.get("host", "")), str(data.get("task_uuid", "")))
        if kind == "runner_item_on_ok":
            self._looped.add(task)
            return self._result(data)
        if kind == "runner_on_ok" and task not in self._looped:
            return self._result(data)
        if kind == "runner_on_skipped":
            return self._skip(data)
        return None

    def _result(self, data: dict[str, Any]) -> Result:
        about, values = data.get("hpcsite") or {}, data.get("res") or {}
        return Result(
            **self._task(data),
            changed=bool(about.get("changed", values.get("changed"))),
            values=values,
            about=about,
        )

    def _skip(self, data: dict[str, Any]) -> Skip:
        about = data.get("hpcsite") or {}
        return Skip(
            **self._task(data),
            condition=str(about.get("condition", "")),
            message=str(about.get("message", "")),
        )

    def _task(self, data: dict[str, Any]) -> dict[str, str]:
        module = str(data.get("resolved_action") or data.get("task_action") or "")
        return {
            "host": str(data.get("host", "")),
            "layer": self._layer,
            "role": str(data.get("role", "")),
            "task": str(data.get("task", "")),
            "module": module.rpartition(".")[2],
        }
