"""ansible-runner's events, with what a plan needs beyond them: which file, and whether it changes.

ansible-runner reports a task's result. In check mode the result of `copy` and `template` does not
name the file that would be made, and of a task with `no_log` it says nothing at all, not even
whether something changes. Both stand in what Ansible hands to a callback.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ansible.plugins.loader import callback_loader

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

DOCUMENTATION = """
callback: hpcsite_events
short_description: ansible-runner's events, with the file of each task and whether it changes
description:
  - Adds C(hpcsite) to each result's event.
type: stdout
extends_documentation_fragment:
  - default_callback
"""

# Arguments that say what a task is about. None of them holds a file's content or a secret.
SHOWN = ("dest", "path", "name")
# Those of hpcsite's own module `daemon`, which decide what a service needs.
SHOWN_LISTS = ("files",)

AwxDisplay: Any = callback_loader.get("awx_display", class_only=True)


class CallbackModule(AwxDisplay):  # type: ignore[misc]
    """Ansible's entry point."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "hpcsite_events"

    _hpcsite: dict[str, Any] | None = None

    def v2_runner_on_ok(self, result: Any) -> None:  # noqa: ANN401 - Ansible's own types
        """Report a result."""
        self._hpcsite = _about(result)
        super().v2_runner_on_ok(result)

    def v2_runner_on_skipped(self, result: Any) -> None:  # noqa: ANN401
        """Report a task that was skipped, and by which condition: ansible-runner leaves it out."""
        self._hpcsite = _about(result) | _why_skipped(result)
        super().v2_runner_on_skipped(result)

    def v2_runner_item_on_ok(self, result: Any) -> None:  # noqa: ANN401
        """Report the result of a loop's item."""
        self._hpcsite = _about(result)
        super().v2_runner_item_on_ok(result)

    def capture_event_data(
        self,
        event: str,
        **event_data: Any,  # noqa: ANN401
    ) -> AbstractContextManager[None]:
        """Add to the event what was noted of the result, once."""
        about, self._hpcsite = self._hpcsite, None
        if about is not None:
            event_data["hpcsite"] = about
        captured: AbstractContextManager[None] = super().capture_event_data(event, **event_data)
        return captured


def _about(result: Any) -> dict[str, Any]:  # noqa: ANN401
    arguments = result._task_fields.get("args") or {}  # noqa: SLF001 - the name before 2.19
    about: dict[str, Any] = {"changed": bool(result.is_changed())}
    about |= {key: str(arguments[key]) for key in SHOWN if arguments.get(key)}
    for key in SHOWN_LISTS:
        if isinstance(arguments.get(key), list):
            about[key] = [str(value) for value in arguments[key]]
    return about


def _why_skipped(result: Any) -> dict[str, Any]:  # noqa: ANN401
    raw = result._result  # noqa: SLF001
    return {
        "condition": str(raw.get("false_condition") or ""),
        "message": str(raw.get("msg") or ""),
        "items": bool(raw.get("results")),
    }
