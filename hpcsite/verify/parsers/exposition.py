"""The text that exporters show their measurements in (Prometheus's exposition format, 0.0.4).

One sample a line: `name{label="value",…} 1.5 [milliseconds]`, after comments that begin with `#`.
OpenMetrics, which services may answer with, adds `# EOF` and exemplars behind ` # `.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hpcsite.verify.parsers import UnreadableError, reader
from hpcsite.verify.parsers.plain import cut

_LINE = re.compile(
    r"^(?P<name>[A-Za-z_:][\w:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>[^\s#]+)(?:\s+-?[\d.]+)?"
    r"(?:\s+#\s.*)?$"
)
_LABEL = re.compile(r'\s*([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


@dataclass(frozen=True)
class Shown:
    """One sample."""

    name: str
    labels: Mapping[str, str]
    value: float


@reader
def read_exposition(text: str) -> tuple[Shown, ...]:
    """Read all samples; raises `UnreadableError` for another line, or where there is none."""
    found = []
    for line in text.lstrip("\ufeff").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.match(line.strip())
        if match is None:
            raise UnreadableError(f"no measurement: {cut(line)}")
        found.append(Shown(match["name"], _labels(match["labels"] or ""), float(match["value"])))
    if not found:
        raise UnreadableError(f"no measurements: {cut(text.strip()) or 'nothing'}")
    return tuple(found)


def _labels(text: str) -> Mapping[str, str]:
    labels, at = {}, 0
    while at < len(text):
        match = _LABEL.match(text, at)
        if match is None:
            raise UnreadableError(f"no labels: {cut(text)}")
        labels[match[1]] = re.sub(r"\\.", lambda each: _ESCAPES.get(each[0], each[0]), match[2])
        at = match.end()
    return labels


def total(samples: tuple[Shown, ...], name: str, **labels: str) -> float | None:
    """Sum up the samples of a name that have some labels; None if there is none."""
    values = [
        one.value
        for one in samples
        if one.name == name and all(one.labels.get(key) == value for key, value in labels.items())
    ]
    return sum(values) if values else None
