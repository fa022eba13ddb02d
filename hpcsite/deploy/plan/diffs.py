"""The diffs in Ansible's results, as text. Nothing here shows a secret: see `masking`."""

import difflib
from functools import lru_cache
from typing import Any, Literal

import yaml

from hpcsite.deploy.plan.masking import Masker

Change = Literal["created", "content", "attributes", "removed"]
SECRET_NOTE = "secret, not shown"  # noqa: S105 - a message
_TOO_LARGE = "too large to show"
_BINARY = "not text"
_CONTEXT_LINES = 3


def entries(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Diffs of a result: Ansible's modules give one, several or none."""
    found = result.get("diff")
    return [entry for entry in (found if isinstance(found, list) else [found]) if entry]


def kind_of(result: dict[str, Any]) -> Change:
    """Say what happens to a file."""
    for entry in entries(result):
        before, after = entry.get("before"), entry.get("after")
        if isinstance(before, dict) and isinstance(after, dict):
            if after.get("state") == "absent":
                return "removed"
            if before.get("state") == "absent":
                return "created"
            if "src" in before:
                return "content"
        elif before == "" and "before_header" not in entry:
            return "created"
        elif before != after or _unshown(entry):
            return "content"
    return "attributes"


def text_of(result: dict[str, Any], masker: Masker) -> tuple[str, str]:
    """Write the diff of a result, and a note where a part of it cannot be shown."""
    texts, notes = [], []
    for entry in entries(result):
        notes += _unshown(entry)
        if "prepared" in entry:
            texts.append(str(entry["prepared"]).strip("\n"))
        else:
            texts.append(_compared(entry.get("before"), entry.get("after")))
    text = "\n".join(filter(None, texts))
    return masker.text(text), ", ".join(dict.fromkeys(notes))


def before_and_after(result: dict[str, Any]) -> tuple[str, str]:
    """Return a file's whole text as it is and as it would be; empty where it is not known."""
    for entry in entries(result):
        before, after = entry.get("before"), entry.get("after")
        if isinstance(before, str) and isinstance(after, str):
            return before, after
    return "", ""


def _unshown(entry: dict[str, Any]) -> list[str]:
    large = [_TOO_LARGE] if {"dst_larger", "src_larger"} & entry.keys() else []
    return large + ([_BINARY] if {"dst_binary", "src_binary"} & entry.keys() else [])


def _compared(before: object, after: object) -> str:
    if before is None or after is None:
        return ""
    if isinstance(before, dict) and isinstance(after, dict):
        return _attributes(before, after)
    return _unified(_text(before), _text(after))


# Many hosts have the same difference, and of long files that costs time.
@lru_cache(maxsize=64)
def _unified(before: str, after: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), lineterm="", n=_CONTEXT_LINES
    )
    return "\n".join(list(lines)[2:])  # without the names: the item has them


def _attributes(before: dict[str, Any], after: dict[str, Any]) -> str:
    """Write owner, mode and the like, one a line; of nested values their whole difference."""
    if any(isinstance(value, dict | list) for value in (*before.values(), *after.values())):
        return _compared(yaml.safe_dump(before), yaml.safe_dump(after))
    changed = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    return "\n".join(f"{key}: {before.get(key)} → {after.get(key)}" for key in sorted(changed))


def _text(value: object) -> str:
    return value if isinstance(value, str) else str(yaml.safe_dump(value))
