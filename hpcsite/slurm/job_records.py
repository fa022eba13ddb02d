"""Reading jobs from Slurm's JSON, running ones (`squeue`) and recorded ones (`sacct`).

What a version leaves out is empty, never an error. TRES are counts by name, memory in MiB.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hpcsite.slurm.node_records import read_json

# States that a job does not leave (squeue(1), JOB STATE CODES).
ENDED = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "LAUNCH_FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "TIMEOUT",
    }
)
# Why a job waits although nothing is wrong with it: others have what it asks for.
BUSY_REASONS = frozenset(("Resources", "Priority", "ReqNodeNotAvail", "None", "Cleaning"))
_MIB = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024 * 1024}


@dataclass(frozen=True)
class SlurmJob:
    """A job. `exit_code` is Slurm's pair, `7:0`: what it returned, the signal that ended it.

    `partition`, `comment` and times (seconds since the epoch, 0 for none) are of the queue; records
    have none. `ends` is when it ended, or has to.
    """

    id: int
    name: str
    states: tuple[str, ...]
    reason: str
    nodes: str
    exit_code: str
    tres: dict[str, float]
    comment: str = ""
    submitted: int = 0
    started: int = 0
    ends: int = 0
    partition: str = ""

    @property
    def state(self) -> str:
        """The base state; flags such as COMPLETING stand behind it."""
        return self.states[0] if self.states else "UNKNOWN"

    @property
    def ended(self) -> bool:
        """Whether it is over and its resources are free."""
        return self.state in ENDED and "COMPLETING" not in self.states

    @property
    def running(self) -> bool:
        """Whether it runs."""
        return self.state == "RUNNING"


def read_queue(text: str) -> dict[int, SlurmJob]:
    """Read `squeue --json`, by job id."""
    return _by_id(_queued(entry) for entry in read_json(text).get("jobs") or ())


def read_accounting(text: str) -> dict[int, SlurmJob]:
    """Read `sacct --json`, by job id; TRES are the allocated ones."""
    return _by_id(_recorded(entry) for entry in read_json(text).get("jobs") or ())


def read_tres(text: str) -> dict[str, float]:
    """`cpu=1,mem=1.5G,gres/gpu=2` → counts by name, memory in MiB."""
    counts = {}
    for pair in text.split(","):
        name, _, amount = pair.partition("=")
        if number := _number(amount):
            counts[name] = number
    return counts


def _number(amount: str) -> float:
    scale = _MIB.get(amount[-1:], 1)
    digits = amount[:-1] if amount[-1:] in _MIB else amount
    try:
        return float(digits) * scale
    except ValueError:
        return 0


def _by_id(jobs: Iterable[SlurmJob]) -> dict[int, SlurmJob]:
    return {job.id: job for job in jobs}


def _queued(entry: dict[str, Any]) -> SlurmJob:
    return SlurmJob(
        id=int(entry.get("job_id") or 0),
        name=str(entry.get("name") or ""),
        states=_states(entry.get("job_state")),
        reason=str(entry.get("state_reason") or ""),
        nodes=str(entry.get("nodes") or ""),
        exit_code=_exit_code(entry.get("exit_code")),
        tres=read_tres(str(entry.get("tres_alloc_str") or "")),
        comment=str(entry.get("comment") or ""),
        submitted=_set_number(entry.get("submit_time")),
        started=_set_number(entry.get("start_time")),
        ends=_set_number(entry.get("end_time")),
        partition=str(entry.get("partition") or ""),
    )


def _recorded(entry: dict[str, Any]) -> SlurmJob:
    state = entry.get("state") or {}
    nodes = str(entry.get("nodes") or "")
    allocated = (entry.get("tres") or {}).get("allocated") or ()
    return SlurmJob(
        id=int(entry.get("job_id") or 0),
        name=str(entry.get("name") or ""),
        states=_states(state.get("current")),
        reason=str(state.get("reason") or ""),
        nodes="" if nodes == "None assigned" else nodes,
        exit_code=_exit_code(entry.get("exit_code")),
        tres={_tres_name(tres): float(tres.get("count") or 0) for tres in allocated},
    )


def _states(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value.split(" ")[0],) if value else ()
    return tuple(str(state) for state in value) if isinstance(value, list) else ()


def _tres_name(tres: dict[str, Any]) -> str:
    kind, name = str(tres.get("type") or ""), str(tres.get("name") or "")
    return f"{kind}/{name}" if name else kind


def _exit_code(value: object) -> str:
    if isinstance(value, int):
        # Slurm 22.05 prints what wait(2) gave.
        return f"{value >> 8}:{value & 0x7F}"
    if not isinstance(value, dict):
        return ""
    returned = _set_number(value.get("return_code"))
    ended_by = value.get("signal")
    signal = _set_number(ended_by.get("id")) if isinstance(ended_by, dict) else 0
    return f"{returned}:{signal}"


def _set_number(value: object) -> int:
    """Slurm's number that may be unset: `{"set": true, "infinite": false, "number": 7}`."""
    if isinstance(value, dict):
        return int(value.get("number") or 0) if value.get("set", True) else 0
    return value if isinstance(value, int) else 0
