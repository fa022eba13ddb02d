"""How fio loads a folder, shared or of a node's own: four patterns, past the page cache."""

from collections.abc import Mapping

from hpcsite.verify.parsers.fio import FioJob, FioRun
from hpcsite.verify.results import Direction, Measurement
from hpcsite.verify.suites.storage_fio import MIB, Load, lacking

DEPTH = 8
_SHELL = """
engine=psync
fio --enghelp 2>/dev/null | grep -qw libaio && engine=libaio
exec fio --ioengine=$engine "$@"
"""
PATTERNS = (
    ("sequential_write", "write", "1m"),
    ("sequential_read", "read", "1m"),
    ("random_write", "randwrite", "4k"),
    ("random_read", "randread", "4k"),
)
_BLOCK_BYTES = {"1m": MIB, "4k": 4096}


def within_s(load: Load) -> float:
    """Seconds that a run may take: each pattern has its time, the first also lays the file out."""
    return 3 * len(PATTERNS) * (load.seconds + 2)


def command(load: Load, depth: int = DEPTH) -> list[str]:
    """Return a command that runs fio with the engine that it has."""
    return ["sh", "-c", _SHELL, "fio", *fio_options(load, depth)]


def fio_options(load: Load, depth: int = DEPTH) -> list[str]:
    """Options of fio, from those for all jobs to each job's own."""
    argv = [
        "--output-format=json",
        "--filename=fio-{name}",
        f"--size={load.file_mib}m",
        "--direct=1",
        f"--iodepth={depth}",
        "--time_based=1",
        f"--runtime={load.seconds}",
        "--end_fsync=1",
        "--thread",
    ]
    for name, pattern, block in PATTERNS:
        argv += [f"--name={name}", f"--rw={pattern}", f"--bs={block}", "--stonewall"]
    return argv


def unit_of(pattern: str) -> str:
    """Return what a pattern is measured in: of small blocks how many, of large ones how much."""
    return "IOPS" if pattern.startswith("random") else "MB/s"


def value_of(pattern: str, job: FioJob) -> float:
    """Return what a job reached, in the pattern's unit."""
    return job.iops if unit_of(pattern) == "IOPS" else job.bytes_per_s / 1e6


def reached(
    path: str, runs: Mapping[str, FioRun], wrong: list[str], unknown: list[str]
) -> dict[str, dict[str, float]]:
    """Return what nodes reached, by pattern and node; who moved nothing goes into `wrong`."""
    found: dict[str, dict[str, float]] = {}
    for name, _, _ in PATTERNS:
        jobs = {node: run.jobs[name] for node, run in runs.items() if name in run.jobs}
        unknown += lacking(path, name, runs, jobs)
        idle = {node for node, job in jobs.items() if job.ios <= 0 or job.bytes_per_s <= 0}
        wrong += [f"{node}: {path}: fio moved nothing in {name}" for node in jobs if node in idle]
        found[name] = {n: value_of(name, job) for n, job in jobs.items() if n not in idle}
    return found


def measurement(
    pattern: str, value: float, load: Load, depth: int = DEPTH, **at: str | int
) -> Measurement:
    """Return what a pattern reached as a measurement."""
    blocks: Mapping[str, str] = {name: block for name, _, block in PATTERNS}
    return Measurement(
        name=pattern,
        value=round(value, 3),
        unit=unit_of(pattern),
        direction=Direction.HIGHER,
        at={
            **at,
            "block_bytes": _BLOCK_BYTES[blocks[pattern]],
            "depth": depth,
            "file_mib": load.file_mib,
            "direct": 1,
        },
    )
