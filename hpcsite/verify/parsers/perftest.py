"""What `ib_write_bw` and `ib_write_lat` print, of any version.

Newer ones also write their results as JSON (`--out_json`), which is not always whole
(linux-rdma/perftest issues 216 and 322); the table is always there. Its columns are found by their
headings, since options add some, and its figures may touch each other. MB is 2^20 bytes in perftest
(the format factor in its sources), Gb is 10^9 bits.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from hpcsite.verify.parsers import UnreadableError

JSON_MARK = "--- json"
_GBIT_PER_MB = 8 * 2**20 / 1e9
_HEADINGS = re.compile(
    r"#bytes|#iterations|#sl|BW peak\[(?P<peak>[^\]]+)\]|BW average\[(?P<average>[^\]]+)\]"
    r"|MsgRate(?: Port\d)?\[Mpps\]|BW Port\d\[[^\]]+\]|CPU_Util\[%+\]"
    r"|t_\w+\[usec\]|99(?:\.9)?%+ percentile\[usec\]|tps average"
)
# Latencies are printed with two decimals, so that those which touch each other can be told apart.
_FIGURES_THAT_TOUCH = re.compile(r"\d+\.\d{2}|\d+(?![\d.])")
_DEVICE = re.compile(r"\bDevice\s*:\s*(\S+)")
_TRANSPORT = re.compile(r"Transport type\s*:\s*(\S+)")


@dataclass(frozen=True)
class Used:
    """What a test says that it went over."""

    device: str
    transport: str


@dataclass(frozen=True)
class Bandwidth:
    """Result of a bandwidth test. The peak is 0 in a test that was bounded by time."""

    used: Used
    message_bytes: int
    average_gbit_s: float
    peak_gbit_s: float


@dataclass(frozen=True)
class Latency:
    """Result of a latency test, in microseconds, one way."""

    used: Used
    message_bytes: int
    minimum_us: float
    typical_us: float
    p99_us: float


def read_bandwidth(text: str) -> Bandwidth:
    """Read a bandwidth test that was run with `--report_gbits`, or without."""
    # The JSON does not say its unit, which is that of the table.
    row = _json_row(text, ("MsgSize", "BW_average", "BW_peak")) if "[Gb/sec]" in text else {}
    row = row or _table_row(text)
    average, peak = _figure(row, "BW_average"), _figure(row, "BW_peak")
    if average <= 0:
        raise UnreadableError(f"the average bandwidth is {average}")
    return Bandwidth(_used(text), int(_figure(row, "MsgSize")), average, peak)


def read_latency(text: str) -> Latency:
    """Read a latency test that was bounded by iterations."""
    row = _json_row(text, ("MsgSize", "t_min", "t_typical", "percentile_99")) or _table_row(text)
    found = Latency(
        _used(text),
        int(_figure(row, "MsgSize")),
        _figure(row, "t_min"),
        _figure(row, "t_typical"),
        _figure(row, "percentile_99"),
    )
    if not 0 < found.minimum_us <= found.typical_us <= found.p99_us:
        raise UnreadableError(
            f"latencies that cannot be: least {found.minimum_us}, typical {found.typical_us}, "
            f"99 % {found.p99_us}"
        )
    return found


def _used(text: str) -> Used:
    device, transport = _DEVICE.search(text), _TRANSPORT.search(text)
    if device is None or transport is None:
        raise UnreadableError("the output does not say which device was used")
    return Used(device[1], transport[1])


def _figure(row: dict[str, float], name: str) -> float:
    if name not in row:
        raise UnreadableError(f"the output has no {name}")
    value = row[name]
    if not 0 <= value < float("inf"):
        raise UnreadableError(f"{name} is {value}")
    return value


def _json_row(text: str, names: tuple[str, ...]) -> dict[str, float]:
    """Results in the JSON, if there is any that is whole."""
    begin = text.partition(JSON_MARK)[2]
    try:
        document: Any = json.JSONDecoder().raw_decode(begin[begin.index("{") :])[0]
        results = document["results"]
        return {name: float(results[name]) for name in names}
    except (ValueError, KeyError, TypeError):
        return {}


def _table_row(text: str) -> dict[str, float]:
    """Read the first line of figures below the headings, in Gb/s where they are bandwidths."""
    lines = text.partition(JSON_MARK)[0].splitlines()
    for number, line in enumerate(lines):
        headings = [_name(found) for found in _HEADINGS.finditer(line)]
        if len(headings) < 3 or headings[0] != "MsgSize":
            continue
        for below in lines[number + 1 :]:
            if set(below.strip()) == {"-"}:
                break
            if values := _figures(below, headings):
                row = dict(zip(headings, values, strict=True))
                return _in_gbit(row, line)
    raise UnreadableError(_first_complaint(text))


def _name(found: "re.Match[str]") -> str:
    """Name a column as the JSON does."""
    heading = found[0]
    if heading == "#bytes":
        return "MsgSize"
    if heading.startswith("99"):
        return "percentile_99.9" if heading.startswith("99.9") else "percentile_99"
    return heading.partition("[")[0].replace(" ", "_")


def _figures(line: str, headings: list[str]) -> list[float]:
    """Figures of a line that has only figures, as many as there are columns; else none."""
    # Warnings may stand between the lines of the table.
    words = line.split()
    if "t_min" in headings and re.fullmatch(r"[\d.\s]+", line):
        words = _FIGURES_THAT_TOUCH.findall(line)
    values = [value for word in words if (value := _number(word)) is not None]
    return values if len(values) == len(words) == len(headings) else []


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _in_gbit(row: dict[str, float], headings: str) -> dict[str, float]:
    if "[MB/sec]" not in headings:
        return row
    return {
        name: value * _GBIT_PER_MB if name.startswith("BW_") else value
        for name, value in row.items()
    }


def _first_complaint(text: str) -> str:
    """Say why there are no results: what the tool complained of, else that there are none."""
    plain = text.partition(JSON_MARK)[0]
    words = ("error", "fail", "unable", "couldn't", "not found", "warning")
    lines = [line.strip() for line in plain.splitlines()]
    said = next((line for line in lines if any(w in line.lower() for w in words)), "")
    return f"no results in the output: {said}" if said else "no results in the output"
