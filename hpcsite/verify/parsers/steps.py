"""What `programs/scaling.c` says: `key=value` lines, and `allreduce BYTES SECONDS`."""

import math
import re
from dataclasses import dataclass

from hpcsite.verify.parsers import UnreadableError, reader

# As it is, or as `srun --label` and mpirun put it.
_PREFIX = r"^(?:\s*\d+: |\[\d+,\d+\]<\w+>:\s*)?"
_VALUE = re.compile(_PREFIX + r"(ranks|errors|bytes|alone_s|step_s)=(\S+)\s*$", re.ASCII)
_REDUCE = re.compile(_PREFIX + r"allreduce (\S+) (\S+)\s*$")


@dataclass(frozen=True)
class Steps:
    """Seconds a step with all ranks and alone; an all-reduce of `bytes` belongs to each step."""

    ranks: int
    errors: int
    bytes: int
    alone_s: float
    step_s: float
    reduces: tuple[tuple[int, float], ...]


@reader
def read_steps(text: str) -> Steps:
    """Read the program's output. Raises `UnreadableError` with the line, or what is missing."""
    values: dict[str, float] = {}
    reduces: list[tuple[int, float]] = []
    for line in text.splitlines():
        if found := _VALUE.match(line):
            values[found[1]] = _number(found[2], line, least=0)
        elif found := _REDUCE.match(line):
            reduces.append((int(_number(found[1], line)), _number(found[2], line)))
    missing = {"ranks", "errors", "bytes", "alone_s", "step_s"} - values.keys()
    if missing or len(reduces) < 2 or not values["ranks"] or not values["step_s"]:
        raise UnreadableError(
            f"the program did not print all its figures: {', '.join(sorted(missing)) or text[:200]}"
        )
    return Steps(
        int(values["ranks"]),
        int(values["errors"]),
        int(values["bytes"]),
        values["alone_s"],
        values["step_s"],
        tuple(sorted(reduces)),
    )


def _number(word: str, line: str, least: float = 1e-12) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not (least <= value < math.inf):
        raise UnreadableError(f"not a figure of the program: {line[:500]}")
    return value
