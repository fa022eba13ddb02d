"""What wraps the output of a tool that a launcher started: marks, colours and line prefixes."""

import json
import re
from collections.abc import Iterator
from typing import Any

from hpcsite.verify.parsers import UnreadableError

# The longest part of a tool's output that a message repeats.
SAID_MOST = 500
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
# `srun --label` writes `3: `, Open MPI's mpirun `[1,3]<stdout>:` and Hydra's `[3] `.
_RANK = re.compile(r"^(?:\s*\d+: |\[\d+,\d+\]<std(?:out|err)>: ?|\[\d+\] )")
# Numbers that JSON does not know, as C's printf writes them.
_NO_NUMBER = re.compile(r"(?<=[:\[,\s])-?(?:nan|inf)(?:inity)?(?=[\s,\]}])", re.IGNORECASE)


def plain_lines(text: str) -> list[str]:
    """Return the lines of a tool's own output: no byte order mark, colours or rank prefixes."""
    text = _ESCAPE.sub("", text.lstrip("\ufeff"))
    return [_RANK.sub("", line.rstrip()) for line in text.splitlines()]


def objects_in(text: str, tool: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects that stand in a tool's output, each begun on a line of its own.

    Notes before, between and after them are passed over. Raises `UnreadableError` if there is none,
    or one that is cut off or broken, with the line where it stops to be JSON.
    """
    lines = plain_lines(text)
    cleaned = _NO_NUMBER.sub("null", "\n".join(lines))
    decoder, found = json.JSONDecoder(), 0
    at = _next_object(cleaned, 0)
    while at >= 0:
        try:
            value, end = decoder.raw_decode(cleaned, at)
        except ValueError as error:
            if found:
                return
            where = error.pos if isinstance(error, json.JSONDecodeError) else at
            raise UnreadableError(
                f"{tool}'s JSON cannot be read: {error}: {line_at(cleaned, where)}"
            ) from error
        found += 1
        yield value
        at = _next_object(cleaned, end)
    if not found:
        said = next((line.strip() for line in lines if line.strip()), "nothing")
        raise UnreadableError(f"{tool} printed no JSON: {cut(said)}")


def _next_object(text: str, begin: int) -> int:
    found = re.compile(r"^[ \t]*\{", re.MULTILINE).search(text, begin)
    return found.end() - 1 if found else -1


def line_at(text: str, position: int) -> str:
    """Return the line of a text that a position is in; the last one with words at its end."""
    if not text[position:].strip():
        said = [line for line in text.splitlines() if line.strip()]
        return cut(said[-1].strip()) if said else ""
    begin = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    return cut(text[begin : end if end >= 0 else len(text)].strip())


def cut(line: str) -> str:
    """Shorten a line for a message."""
    return line if len(line) <= SAID_MOST else line[: SAID_MOST - 1] + "…"


def number(value: object) -> float | None:
    """Return a JSON number that can be reckoned with, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    found = float(value)
    return found if abs(found) != float("inf") and found == found else None
