"""Reading what fio says with `--output-format=json`.

fio writes notes before its JSON, and sometimes after it (that it lays out a file, that an option
is ignored), and numbers that JSON does not know (`nan`, `-nan`, `inf`). Older versions lack
`bw_bytes`, and have `bw` in KiB/s only.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_SIDES = ("read", "write")
_NO_NUMBER = re.compile(r"(?<=[:\[,\s])-?(?:nan|inf)(?=[\s,\]}])", re.IGNORECASE)
_KIB = 1024
_NO_ENGINE = re.compile(r"engine \S+ not loadable|failed to load engine|ioengine.*not valid")


class FioError(Exception):
    """Its output cannot be read, or says that it failed."""


@dataclass(frozen=True)
class FioJob:
    """One job of a run: what it moved in its busier direction."""

    name: str
    side: str
    bytes_per_s: float
    ios: int
    iops: float
    runtime_ms: float
    error: int


@dataclass(frozen=True)
class FioRun:
    """A run of fio."""

    version: str
    jobs: dict[str, FioJob]


def lacks_engine(text: str) -> bool:
    """Whether fio says that it does not have the engine that it was asked for."""
    return bool(_NO_ENGINE.search(text))


def read_fio(text: str) -> FioRun:
    """Read fio's output; raises `FioError`."""
    found = _document(text)
    listed = found.get("jobs")
    if not isinstance(listed, list) or not listed:
        raise FioError("fio's output has no jobs")
    jobs = [_job(one) for one in listed if isinstance(one, dict)]
    return FioRun(str(found.get("fio version", "fio")), {job.name: job for job in jobs})


def _document(text: str) -> Mapping[str, Any]:
    begin = re.search(r"^\{", text, re.MULTILINE)
    if begin is None:
        said = [line.strip() for line in text.splitlines() if line.strip()]
        raise FioError(f"fio printed no JSON: {said[0] if said else 'nothing'}")
    cleaned = _NO_NUMBER.sub("null", text[begin.start() :])
    try:
        found, _ = json.JSONDecoder().raw_decode(cleaned)
    except ValueError as error:
        raise FioError(f"fio's JSON cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise FioError("fio's JSON is no object")
    return found


def _job(job: Mapping[str, Any]) -> FioJob:
    sides = {side: job[side] for side in _SIDES if isinstance(job.get(side), dict)}
    if not sides:
        raise FioError(f"fio's job {job.get('jobname')} has neither read nor write")
    side = max(sides, key=lambda name: _number(sides[name], "total_ios", "io_bytes"))
    known = sides[side]
    ios, runtime = _number(known, "total_ios"), _number(known, "runtime")
    speed = _number(known, "bw_bytes") or _number(known, "bw") * _KIB
    iops = _number(known, "iops") or (ios * 1000 / runtime if runtime else 0)
    error = int(_number(job, "error"))
    return FioJob(str(job.get("jobname", "")), side, speed, int(ios), iops, runtime, error)


def _number(values: Mapping[str, Any], *keys: str) -> float:
    for key in keys:
        value = values.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    return 0.0
