"""What an Ansible result says of a failure, in words a person can use."""

import re
from typing import Any

MAX_LINES = 25
_EXIT_CODE = "exit code "
CENSORED = "the task handles a secret, so Ansible hides its output (no_log)"

# ansible-core 2.19 wraps a module's message in what it was doing; the task is named beside it.
_WRAPPING = re.compile(r"^(?:Task failed|Module failed|Action failed|Failed)(?:: |\. )+", re.I)
# mitogen puts this before what ssh or sudo said when a connection did not come about.
_MITOGEN = re.compile(r"^EOF on stream; last \d+ lines received:\s*")
# Messages that say no more than that there is a better one in another field.
_EMPTY = (
    "non-zero return code",
    "module failure",
    "all items completed",
    "one or more items failed",
)
_MITOGEN_LOST = "Mitogen was disconnected from the remote environment"


def failure_message(result: dict[str, Any]) -> str:
    """Message of a failed or unreachable result; never empty, at most `MAX_LINES` lines."""
    if "censored" in result or result.get("_ansible_no_log"):
        return CENSORED
    items = [item for item in result.get("results") or [] if _broken(item)]
    text = "\n".join(_item_message(item) for item in items) if items else _one_message(result)
    return _shortened(text or "failed without a message")


def changed_items(result: dict[str, Any]) -> tuple[str, ...]:
    """Labels of a loop's items that changed something; none where Ansible hides them."""
    if "censored" in result or result.get("_ansible_no_log"):
        return ()
    items = [item for item in result.get("results") or [] if isinstance(item, dict)]
    labels = [_label(item) for item in items if item.get("changed") and "censored" not in item]
    return tuple(dict.fromkeys(filter(None, labels)))


def _broken(item: Any) -> bool:  # noqa: ANN401 - results hold whatever a module returned
    return isinstance(item, dict) and bool(item.get("failed") or item.get("unreachable"))


def _item_message(item: dict[str, Any]) -> str:
    label, message = _label(item), _one_message(item)
    return f"{label}: {message}" if label else message


def _label(item: dict[str, Any]) -> str:
    """Name of a loop's item; empty where it has none."""
    label = item.get("_ansible_item_label", item.get("item"))
    if isinstance(label, dict):
        label = label.get("name")
    return "" if label is None else str(label)


def _one_message(result: dict[str, Any]) -> str:
    if "censored" in result or result.get("_ansible_no_log"):
        return CENSORED
    parts = _parts(result)
    if not any(parts):
        parts = [str(result.get("reason") or "").strip()]
    return "\n".join(dict.fromkeys(part for part in parts if part))


def _parts(result: dict[str, Any]) -> list[str]:
    message, streams = _message_field(result), _streams(result)
    if message.startswith(_EXIT_CODE) and len(streams) == 1 and "\n" not in streams[0]:
        return [f"{message}: {streams[0]}"]
    return [message, *streams]


def _message_field(result: dict[str, Any]) -> str:
    message = result.get("msg")
    if isinstance(message, list):
        message = "\n".join(str(line) for line in message)
    text = str(message or "").strip()
    while (shorter := _WRAPPING.sub("", text)) != text:
        text = shorter
    text = _MITOGEN.sub("", text)
    if text.startswith(_MITOGEN_LOST):
        return "the connection broke while the task ran"
    if text.lower().rstrip(".").startswith(_EMPTY):
        return f"{_EXIT_CODE}{result['rc']}" if result.get("rc") else ""
    return text


def _streams(result: dict[str, Any]) -> list[str]:
    """Take the output of the failed command: stderr, else stdout."""
    message = str(result.get("msg") or "")
    for key in ("stderr", "module_stderr", "stdout", "module_stdout"):
        text = str(result.get(key) or "").strip()
        if text:
            return [] if text in message else [text]
    return []


def _shortened(text: str) -> str:
    lines = [line.rstrip() for line in text.splitlines()]
    if len(lines) <= MAX_LINES:
        return "\n".join(lines)
    # The end of a log says why; the beginning says of what.
    head, tail = lines[:4], lines[-(MAX_LINES - 5) :]
    return "\n".join([*head, f"… {len(lines) - len(head) - len(tail)} lines left out …", *tail])
