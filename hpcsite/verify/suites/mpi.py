"""Suite `mpi`: programs of hpcsite's own, compiled and started as a user's would be."""

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import pairwise

from hpcsite.verify import jobs
from hpcsite.verify.claims import Claim, Mode
from hpcsite.verify.cluster import Target, folded, names
from hpcsite.verify.context import Context
from hpcsite.verify.engine import Check
from hpcsite.verify.findings import Finding, NotMeasuredError, Tally
from hpcsite.verify.results import Direction, Measurement, Status
from hpcsite.verify.suites import needs
from hpcsite.verify.transport import TIMED_OUT, Answer

# Programs that are compiled together, since whoever wants one of them wants the others.
_SETS = (("collectives", "pingpong"), ("scaling",))
# Most of it is for the start: an emulated node takes half a minute to load Open MPI.
_RUN_S = 90
# Compiles in a private folder, which the run removes at its end.
# Where distributions of the RHEL family keep mpicc, for `module load mpi` to find.
_COMPILE = """
PATH=$PATH:/usr/lib64/openmpi/bin
command -v mpicc >/dev/null || { echo missing; exit 0; }
mkdir -m 700 "$1" && cd "$1" || exit 9
echo "folder=$1"
programs=$2
shift 2
while [ $# -gt 0 ]; do printf %s "$2" | base64 -d >"$1" || exit 9; shift 2; done
for program in $programs; do
  mpicc -O2 -std=c99 -D_GNU_SOURCE -o "$program" "$program.c" & pids="$pids $!"
done
for pid in $pids; do wait "$pid" || exit 8; done
"""


@dataclass(frozen=True)
class Programs:
    """Compiled programs in a folder on the submit host; `fault` says why there are none."""

    folder: str = ""
    fault: str = ""
    missing: bool = False


def programs(context: Context, program: str) -> Programs:
    """Return a program with those of its set, compiled once in a run."""
    chosen = next(names for names in _SETS if program in names)
    return context.shared(f"mpi-{chosen[0]}", lambda inner: _compile(inner, chosen))


def _compile(context: Context, chosen: tuple[str, ...]) -> Programs:
    folder = files("hpcsite.verify") / "programs"
    words = []
    for name in ("self.h", *(f"{program}.c" for program in chosen)):
        words += [name, base64.b64encode((folder / name).read_bytes()).decode()]
    # Made by mkdir, which refuses another's.
    private = f"/tmp/{context.core.job_name}-mpi-{chosen[0]}"  # noqa: S108
    context.core.leftovers.append(private)
    argv = ["bash", "-c", _COMPILE, "compile", private, " ".join(chosen), *words]
    answer = context.user(argv, "compile", timeout_s=60)
    return read_compiled(answer)


def read_compiled(answer: Answer) -> Programs:
    """Read what the compile script said."""
    if answer.ok and answer.stdout.strip().endswith("missing"):
        return Programs(missing=True)
    found = re.search(r"^folder=(\S+)$", answer.stdout, re.MULTILINE)
    if found is None:
        raise NotMeasuredError(f"no folder to compile in on the submit host: {answer.complaint}")
    fault = "" if answer.ok else f"mpicc cannot compile a program: {answer.complaint}"
    return Programs(found[1], fault)


def find_collectives(context: Context) -> Finding:
    """Ring, all-reduce and all-to-all over two ranks on each of two nodes."""
    pair = context.cluster.together(2)[:2]
    ranks = 4 if all(target.cpus > 1 for target in pair) else 2
    answer = run(context, pair, "collectives", ranks)
    if isinstance(answer, Finding):
        return answer
    tally = Tally(collectives_faults(answer, names(pair), ranks))
    return tally.finding(names(pair))


def find_pingpong(context: Context) -> Finding:
    """Latency and bandwidth between one rank on each of two nodes."""
    pair = context.cluster.together(2)[:2]
    answer = run(context, pair, "pingpong", 2)
    if isinstance(answer, Finding):
        return answer
    measured = read_pingpong(answer.stdout, ",".join(names(pair)))
    tally = Tally()
    if fault := pingpong_fault(measured):
        tally.unknown.append(fault)
    return tally.finding(names(pair), measurements=measured)


def run(
    context: Context,
    pair: Sequence[Target],
    program: str,
    ranks: int,
    environment: Sequence[str] = (),
    runs_s: float = _RUN_S,
) -> Answer | Finding:
    """Start a program by srun, in an environment; a finding where that much cannot be done."""
    built = programs(context, program)
    if built.missing:
        return Finding(Status.SKIP, no_compiler(context), names(tuple(pair)))
    if built.fault:
        return Finding(Status.FAIL, built.fault, names(tuple(pair)))
    copy = f"/tmp/{context.core.job_name}-{program}"  # noqa: S108 - on compute nodes; own name
    argv = [
        *(["env", *environment] if environment else []),
        "srun",
        *context.job_flags(None, minutes=3, memory_mib=512),
        f"--immediate={max(int(context.options.wait_s), 1)}",
        f"--partition={pair[0].partition}",
        f"--nodelist={folded(tuple(pair))}",
        f"--nodes={len(pair)}",
        f"--ntasks={ranks}",
        f"--ntasks-per-node={ranks // len(pair)}",
        "--distribution=block",
        "--input=none",
        "--mpi=pmix",
        "--kill-on-bad-exit=1",
        f"--bcast={copy}",
        f"{built.folder}/{program}",
        "--remove-self",
    ]
    answer = context.user(argv, program, timeout_s=context.options.wait_s + runs_s)
    if not answer.ok and jobs.SRUN_BUSY in answer.stderr:
        raise jobs.not_started(context, [target.name for target in pair])
    if not answer.ok:
        return Finding(Status.FAIL, _why_ended(context, answer, pair), names(tuple(pair)))
    return answer


def no_compiler(context: Context) -> str:
    """Say that there is no compiler, and how to get one."""
    host = context.core.host.name
    return f"no mpicc on {host}; `openmpi_development: true` for {host} makes deploy install it"


def _why_ended(context: Context, answer: Answer, pair: Sequence[Target]) -> str:
    """Say how a program ended, and which node is down if one is: that is then the likely cause."""
    ended = f"the program ended with {answer.rc}: {first_error(answer)}"
    if answer.rc == TIMED_OUT:
        ended = f"the program did not end within {answer.seconds:.0f} s"
    down = jobs.down_now(context, [target.name for target in pair])
    return f"{down}; {ended}" if down else ended


def collectives_faults(answer: Answer, expected: Sequence[str], ranks: int) -> list[str]:
    """Say what is wrong with what `collectives` printed."""
    pairs = [line.partition("=")[::2] for line in answer.stdout.splitlines() if "=" in line]
    values = dict(pairs)
    hosts = {value.partition(".")[0] for key, value in pairs if key == "host"}
    faults = []
    if hosts != set(expected):
        faults.append(f"ranks ran on {', '.join(sorted(hosts)) or 'no node'}")
    right = {
        "ranks": str(ranks),
        "ring": str(ranks * (ranks + 1) // 2),
        "allreduce_errors": "0",
        "alltoall_errors": "0",
    }
    faults += [
        f"{key} is {values.get(key, 'missing')}, not {value}"
        for key, value in right.items()
        if values.get(key) != value
    ]
    return faults


def first_error(answer: Answer) -> str:
    """Return the first line that tells of an error, which later ones only follow from."""
    lines = [line.strip() for line in answer.stderr.splitlines()]
    # What is asserted comes before a backtrace, which is full of errors' names.
    signs = ("Assertion", "error")
    found = (line for sign in signs for line in lines if sign.lower() in line.lower())
    return next(found, answer.complaint)


def read_pingpong(text: str, nodes: str) -> list[Measurement]:
    """Read what `pingpong` printed."""
    measured = []
    if found := re.search(r"^latency_us=([0-9.]+)$", text, re.MULTILINE):
        measured.append(
            Measurement(
                name="latency",
                value=float(found[1]),
                unit="us",
                direction=Direction.LOWER,
                at={"message_bytes": 1, "nodes": nodes},
            )
        )
    for size, rate in re.findall(r"^bandwidth (\d+) ([0-9.]+)$", text, re.MULTILINE):
        measured.append(
            Measurement(
                name="bandwidth",
                value=float(rate),
                unit="GB/s",
                direction=Direction.HIGHER,
                at={"message_bytes": int(size), "nodes": nodes},
            )
        )
    return measured


def pingpong_fault(measured: Sequence[Measurement]) -> str:
    """Why the numbers cannot be believed; empty if they can."""
    latency = [one.value for one in measured if one.name == "latency"]
    sizes = [int(one.at["message_bytes"]) for one in measured if one.name == "bandwidth"]
    if len(latency) != 1 or len(sizes) < 2:
        return "the program printed no latency, or too few bandwidths"
    if any(one.value <= 0 for one in measured) or any(b <= a for a, b in pairwise(sizes)):
        return "the program printed numbers that cannot be"
    return ""


def _busy_pair(context: Context) -> Claim:
    try:
        pair = context.cluster.together(2)[:2]
    except NotMeasuredError:
        return Claim()
    return Claim(frozenset(names(pair)), Mode.BUSY)


_TWO = (needs.compute_nodes(2),)
CHECKS = (
    Check(
        "mpi",
        "collectives",
        "Ring, all-reduce and all-to-all over two nodes give the right result.",
        find_collectives,
        _TWO,
        _busy_pair,
    ),
    Check(
        "mpi",
        "pingpong",
        "Latency and bandwidth between two nodes are measured.",
        find_pingpong,
        _TWO,
        _busy_pair,
    ),
)
