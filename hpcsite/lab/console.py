"""Reading what a machine printed on its console."""

import re
from pathlib import Path

_LINES = 20
_TERMINAL_CODES = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(\x07|\x1b\\)|[()][A-Z0-9])")


def read(path: Path) -> str:
    """Return a console's output without what only a terminal understands."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return _TERMINAL_CODES.sub("", text)


def end(path: Path) -> str:
    """Return the last lines of a console's output that are not empty."""
    lines = [line.rstrip() for line in read(path).splitlines()]
    return "\n".join([line for line in lines if line][-_LINES:])
