"""A job on several hosts at once that is led step by step: see programs/storage_driver.py."""

import base64
import json
import math
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from hpcsite.site.names import fold
from hpcsite.verify.cluster import Target, names
from hpcsite.verify.context import Context
from hpcsite.verify.findings import NotMeasuredError
from hpcsite.verify.jobs import SRUN_BUSY, not_started
from hpcsite.verify.transport import Answer

_PROGRAMS = ("storage_agent.py", "storage_driver.py", "storage_steps.py")
# Writes them into a private folder, which the run removes at its end.
_INSTALL = """
mkdir -m 700 "$1" && cd "$1" || exit 9
shift
while [ $# -gt 0 ]; do printf %s "$2" | base64 -d >"$1" || exit 9; shift 2; done
"""
# What the slowest host takes to start its agent, once Slurm has given it the job; and to clean up.
_STARTED_S, _LEFT_S = 90, 75

Said = dict[str, Any]


@dataclass(frozen=True)
class Crew:
    """Hosts that take part: by jobs, and `here` the submit host itself if it is one of them."""

    targets: tuple[Target, ...]
    here: str = ""

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names of all."""
        return (*names(self.targets), *([self.here] if self.here else []))


@dataclass
class Session:
    """What the hosts answered, by step and host; `absent` are hosts that never began, with why."""

    answers: dict[str, dict[str, Said]] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)

    def of(self, step: str) -> dict[str, Said]:
        """Answers to a step; empty for one that was not reached."""
        return self.answers.get(step, {})


def lead(
    context: Context,
    crew: Crew,
    steps: Sequence[Said],
    *,
    name: str,
    lasts_s: float,
    memory_mib: int = 128,
) -> Session:
    """Have hosts do steps, one after the other, in at most so many seconds.

    Raises `NotMeasuredError` if that as a whole could not be done.
    """
    folder = context.shared("storage-programs", _install)
    by_partition: dict[str, list[Target]] = {}
    for target in crew.targets:
        by_partition.setdefault(target.partition, []).append(target)
    waits = context.patience(len(crew.targets))
    minutes = math.ceil((_STARTED_S + lasts_s + _LEFT_S) / 60)
    flags = context.job_flags(None, minutes=minutes, memory_mib=memory_mib)
    task = {
        "starters": [
            {"argv": _srun(context, flags, targets), "hosts": [t.name for t in targets]}
            for targets in by_partition.values()
        ],
        "here": crew.here,
        "hosts": crew.hosts,
        "hello_s": waits + _STARTED_S,
        "lasts_s": lasts_s,
        "steps": steps,
    }
    answer = context.user(
        ["python3", f"{folder}/storage_driver.py", packed(task)],
        name,
        timeout_s=waits + _STARTED_S + lasts_s + _LEFT_S,
    )
    return read_session(context, answer, list(by_partition.values()))


def packed(task: Said) -> str:
    """Return a task as one word of a command: Linux takes none of 128 KiB or more (execve(2)).

    Each step names its hosts, which with hundreds of them is much longer; and the same each time.
    """
    return base64.b64encode(zlib.compress(json.dumps(task).encode())).decode()


def _install(context: Context) -> str:
    source = files("hpcsite.verify") / "programs"
    words = []
    for program in _PROGRAMS:
        words += [program, base64.b64encode((source / program).read_bytes()).decode()]
    private = f"/tmp/{context.core.job_name}-storage"  # noqa: S108 - mkdir refuses another's
    context.core.leftovers.append(private)
    answer = context.user(["sh", "-c", _INSTALL, "install", private, *words], "install")
    if not answer.ok:
        raise NotMeasuredError(f"no folder for programs on the submit host: {answer.complaint}")
    return private


def _srun(context: Context, flags: Sequence[str], targets: Sequence[Target]) -> list[str]:
    return [
        "srun",
        *flags,
        f"--immediate={max(int(context.patience(len(targets))), 1)}",
        f"--partition={targets[0].partition}",
        f"--nodelist={fold(target.name for target in targets)}",
        f"--nodes={len(targets)}",
        f"--ntasks={len(targets)}",
        "--ntasks-per-node=1",
        "--kill-on-bad-exit=0",
    ]


def read_session(context: Context, answer: Answer, started: Sequence[Sequence[Target]]) -> Session:
    """Read what the driver printed; raises `NotMeasuredError` if no host ever answered."""
    session = Session()
    ends: dict[int, str] = {}
    for said in _lines(answer.stdout):
        step = str(said.get("id"))
        if "host" in said:
            session.answers.setdefault(step, {}).setdefault(said["host"], said)
        elif step == "silent":
            session.absent = dict.fromkeys(said["hosts"], "")
        elif step == "end":
            ends[said["starter"]] = said["stderr"]
    for number, targets in enumerate(started):
        absent = [target.name for target in targets if target.name in session.absent]
        if absent:
            session.absent |= dict.fromkeys(absent, _why(context, absent, ends.get(number, "")))
    for host, why in session.absent.items():
        session.absent[host] = why or f"{host}: its part did not start"
    if "hello" not in session.answers:
        raise NotMeasuredError(
            "; ".join(dict.fromkeys(session.absent.values())) or answer.complaint
        )
    return session


def _lines(text: str) -> Iterable[Said]:
    for line in text.splitlines():
        try:
            said = json.loads(line)
        except ValueError:
            continue
        if isinstance(said, dict) and "id" in said:
            yield said


def _why(context: Context, nodes: Sequence[str], stderr: str) -> str:
    """Why jobs on nodes did not start."""
    if SRUN_BUSY in stderr:
        return str(not_started(context, nodes))
    errors = [line.strip() for line in stderr.splitlines() if "error" in line]
    return f"{fold(nodes)}: {errors[0] if errors else 'the job did not start in time'}"


def step(op: str, path: str, key: str, ring: Sequence[str], /, **more: object) -> Said:
    """Return a step: `ring` are the hosts that take part, `only` the positions that do it."""
    common = {"id": step_id(path, key), "op": op, "path": path, "ring": list(ring), "timeout_s": 15}
    return {**common, **more}


def step_id(path: str, key: str) -> str:
    """Name of a step on a shared folder."""
    return f"{key} {path}"


def fault(said: Said) -> str:
    """Say what kept a host from doing a step; empty if it did it."""
    if "slow" in said:
        return f"no answer within {said['slow']} s"
    return str(said.get("error", ""))
