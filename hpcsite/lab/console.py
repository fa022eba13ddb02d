"""Reading what a machine printed on its console."""

import re
from itertools import pairwise
from pathlib import Path

_LINES = 20
_TERMINAL_CODES = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(\x07|\x1b\\)|[()][A-Z0-9]|M)")
# What systemd prints each second while it waits.
_PROGRESS = re.compile(r"^\[[* ]*\] (\(\d+ of \d+\) )?(A|Job) .* running \(")


def read(path: Path) -> str:
    """Return a console's output without what only a terminal understands."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return _TERMINAL_CODES.sub("", text)


def end(path: Path) -> str:
    """Return the last lines of a console's output that say something; of waiting, the last one."""
    lines = [line for raw in read(path).splitlines() if (line := raw.rstrip())]
    told = [
        line
        for line, after in pairwise([*lines, ""])
        if not (_PROGRESS.match(line) and _PROGRESS.match(after))
    ]
    return "\n".join(told[-_LINES:])
