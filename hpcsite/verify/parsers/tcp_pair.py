"""What `programs/tcp_pair.py` says under `srun --label`: an object of the side that called."""

import json
import math
import re
from dataclasses import dataclass

from hpcsite.verify.parsers import UnreadableError

_LABEL = re.compile(r"^\s*\d+: ?(\{.*\})\s*$")


@dataclass(frozen=True)
class TcpPair:
    """Figures of a pair: µs of one way, Gb/s to the node that listens and back."""

    latency_us: float
    to_gbit_s: float
    from_gbit_s: float

    @property
    def slower_gbit_s(self) -> float:
        """The slower one of both ways: what is limited on one side shows in one of them."""
        return min(self.to_gbit_s, self.from_gbit_s)

    def better(self, other: "TcpPair") -> "TcpPair":
        """Return the better figures of two tests of the same pair."""
        return TcpPair(
            min(self.latency_us, other.latency_us),
            max(self.to_gbit_s, other.to_gbit_s),
            max(self.from_gbit_s, other.from_gbit_s),
        )


def read_tcp_pair(text: str) -> TcpPair:
    """Read the figures.

    Raises `UnreadableError` with what the program said where it could not measure, or with the
    line that cannot be read.
    """
    said = [match[1] for match in map(_LABEL.match, text.splitlines()) if match]
    objects = [_object(line) for line in said]
    errors = [str(each["error"]) for each in objects if "error" in each]
    figures = [each for each in objects if "error" not in each]
    if len(figures) != 1:
        raise UnreadableError("; ".join(errors) or "the program printed no figures")
    try:
        found = TcpPair(*(float(str(figures[0][name])) for name in TcpPair.__dataclass_fields__))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise UnreadableError(f"no figures of a pair: {said[0][:200]}") from error
    values = (found.latency_us, found.to_gbit_s, found.from_gbit_s)
    if not all(math.isfinite(value) and value > 0 for value in values):
        raise UnreadableError(f"figures that cannot be: {said[0][:200]}")
    return found


def _object(line: str) -> dict[str, object]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"this is no JSON: {line[:200]}") from error
    return found if isinstance(found, dict) else {}
