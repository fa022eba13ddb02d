"""What fio prints with `--output-format=json` (or json+).

fio writes notes before its JSON, and sometimes after it (that it lays out a file, that an option
is ignored), and numbers that JSON does not know (`nan`, `-nan`, `inf`). Before 3.0 it lacks
`bw_bytes` and has `bw` in KiB/s only, and latencies in microseconds (`clat`) rather than
nanoseconds (`clat_ns`) (fio's HOWTO, "JSON output"). `fio --client` has `client_stats` in place of
`jobs`, with the sum of all as a job called "All clients".
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hpcsite.verify.parsers import UnreadableError, reader
from hpcsite.verify.parsers.plain import cut, number, objects_in

_SIDES = ("read", "write")
_LISTS = ("jobs", "client_stats")
_ALL_CLIENTS = "All clients"
_KIB = 1024
_P99 = "99.000000"
# What a latency is in, by its key.
_LATENCIES = {"clat_ns": 1e3, "clat": 1.0, "lat_ns": 1e3, "lat": 1.0}
_NO_ENGINE = re.compile(r"engine \S+ not loadable|failed to load engine|ioengine.*not valid")


@dataclass(frozen=True)
class FioJob:
    """One job of a run: what it moved in its busier direction. `p99_us`: None where not told."""

    name: str
    side: str
    bytes_per_s: float
    ios: int
    iops: float
    runtime_ms: float
    error: int
    p99_us: float | None = None


@dataclass(frozen=True)
class FioRun:
    """A run of fio."""

    version: str
    jobs: dict[str, FioJob]


def lacks_engine(text: str) -> bool:
    """Whether fio says that it does not have the engine that it was asked for."""
    return bool(_NO_ENGINE.search(text))


@reader
def read_fio(text: str) -> FioRun:
    """Read fio's output; raises `UnreadableError`."""
    found = _document(text)
    listed: list[Any] = next((found[key] for key in _LISTS if isinstance(found.get(key), list)), [])
    if not listed:
        raise UnreadableError("fio's output has no jobs")
    jobs = [_job(one) for one in listed if isinstance(one, dict)]
    if not jobs:
        raise UnreadableError(f"fio's jobs cannot be read: {cut(str(listed))}")
    named = {job.name: job for job in jobs if job.name != _ALL_CLIENTS or len(jobs) == 1}
    return FioRun(str(found.get("fio version", "fio")), named)


def _document(text: str) -> Mapping[str, Any]:
    """Return the object that tells of jobs; fio can print others before it."""
    first: Mapping[str, Any] | None = None
    for found in objects_in(text, "fio"):
        if any(key in found for key in _LISTS):
            return found
        first = found if first is None else first
    return first or {}


def _job(job: Mapping[str, Any]) -> FioJob:
    name = str(job.get("jobname", ""))
    sides = {side: job[side] for side in _SIDES if isinstance(job.get(side), dict)}
    if not sides:
        raise UnreadableError(
            f"fio's job {cut(name) or 'without a name'} has neither read nor write"
        )
    side = max(sides, key=lambda name: _first(sides[name], "total_ios", "io_bytes", "io_kbytes"))
    known = sides[side]
    ios, runtime = _first(known, "total_ios"), _first(known, "runtime")
    speed = _first(known, "bw_bytes") or _first(known, "bw") * _KIB
    iops = _first(known, "iops") or (ios * 1000 / runtime if runtime > 0 else 0)
    if min(ios, runtime, speed, iops) < 0:
        raise UnreadableError(f"fio's job {cut(name)} tells of figures below zero")
    error = int(_first(job, "error"))
    return FioJob(name, side, speed, int(ios), iops, runtime, error, _p99(known))


def _p99(side: Mapping[str, Any]) -> float | None:
    for key, per_us in _LATENCIES.items():
        latency = side.get(key)
        percentiles = latency.get("percentile") if isinstance(latency, dict) else None
        if isinstance(percentiles, dict):
            value = number(percentiles.get(_P99))
            if value is not None and value > 0:
                return value / per_us
    return None


def _first(values: Mapping[str, Any], *keys: str) -> float:
    """Return the first of some figures that is told; 0 if none is."""
    found = (number(values.get(key)) for key in keys)
    return next((value for value in found if value is not None), 0.0)
