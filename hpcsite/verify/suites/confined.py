"""Two jobs on each node at the same time, and what they tell of how the kernel confines them.

Shell alone: a compute node has no compiler, and what is asked for here (which error a device gives,
which CPUs are allowed, whether 300 MiB can be had) the shell and coreutils can tell.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hpcsite.verify.cluster import Target
from hpcsite.verify.context import Context
from hpcsite.verify.spread import NodeAnswer, spread

# $1 is srun, the rest its flags and command; each job's own flags stand in front, its name behind.
_BOTH = """
srun=$1; shift
{starts}
bad=0
for pid in $pids; do wait "$pid" || bad=1; done
exit $bad
"""
_ONE = """
{{ "$srun" {flags} "$@" {name}; rc=$?; echo "ended={name} rc=$rc"; exit $rc; }} & pids="$pids $!"
"""
# What limits a job stands in the folders of its cgroups (cgroups(7): `0::` is version 2).
BEGIN = """
export LC_ALL=C
say() { echo "$name: $*"; }
name=$1
say "job=$SLURM_JOB_ID node=$SLURMD_NODENAME gpus=$SLURM_STEP_GPUS"
own=/; while IFS=: read -r number _ path; do [ "$number" = 0 ] && own=$path; done </proc/self/cgroup
say "cgroup=$own"
"""
_LINE = re.compile(r"^(\w+): (.*)$")
_ENDED = re.compile(r"^ended=(\w+) rc=(\d+)$")


@dataclass(frozen=True)
class JobSaid:
    """What one of the two jobs printed, and how its srun ended; None where it did not."""

    lines: tuple[str, ...] = ()
    rc: int | None = None

    @property
    def id(self) -> int:
        """Slurm's number of the job; 0 if it did not begin."""
        found = self.value("job").partition(" ")[0]
        return int(found) if found.isdigit() else 0

    def value(self, key: str) -> str:
        """Return what stands behind `key=` on the first line that begins with it."""
        start = f"{key}="
        return next((line.removeprefix(start) for line in self.lines if line.startswith(start)), "")

    def word(self, key: str) -> str:
        """Return what stands behind `key=` in any line, up to the next blank."""
        found = re.search(rf"(?:^|\s){key}=(\S*)", "\n".join(self.lines))
        return found[1] if found else ""


def both(
    context: Context,
    targets: Sequence[Target],
    script: str,
    jobs: Mapping[str, Sequence[str]],
    *flags: str,
    name: str,
) -> dict[str, NodeAnswer]:
    """Run a script as several jobs beside each other on each target: names of jobs, their flags.

    The script is given the job's name. Raises `NotMeasuredError` as `spread` does.
    """
    starts = "".join(_ONE.format(flags=shlex.join(own), name=job) for job, own in jobs.items())
    driver = ["bash", "-c", _BOTH.format(starts=starts), "both"]
    return spread(
        context, targets, ["sh", "-c", BEGIN + script, "job"], *flags, name=name, driver=driver
    )


def read_jobs(text: str) -> dict[str, JobSaid]:
    """Read what the jobs of one node printed, by the jobs' names."""
    lines: dict[str, list[str]] = {}
    ended: dict[str, int] = {}
    for line in text.splitlines():
        if found := _ENDED.match(line):
            ended[found[1]] = int(found[2])
        elif found := _LINE.match(line):
            lines.setdefault(found[1], []).append(found[2])
    return {
        name: JobSaid(tuple(lines.get(name, ())), ended.get(name))
        for name in dict.fromkeys([*lines, *ended])
    }


def read_set(text: str) -> frozenset[int]:
    """Numbers of a list as the kernel writes it, such as `0-3,8`. Raises `ValueError`."""
    numbers: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers.update(range(int(first), int(last or first) + 1))
    return frozenset(numbers)
