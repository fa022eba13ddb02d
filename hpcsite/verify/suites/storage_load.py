"""Checks `storage/throughput`, `storage/metadata` and `storage/many_files`.

fio reads and writes past the node's page cache (O_DIRECT, see open(2) for what NFS makes of it):
what is measured is the network, the server, and for reads the server's memory. No figure is held
against anything here: no reference is known for a lab, and a site has its own.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hpcsite.verify.context import Context
from hpcsite.verify.findings import Finding, Tally
from hpcsite.verify.fio import FioError, FioJob, FioRun, lacks_engine, read_fio
from hpcsite.verify.results import Direction, Measurement
from hpcsite.verify.session import Said, Session, fault, lead, step, step_id
from hpcsite.verify.suites.storage_coherence import did_it, work_folder
from hpcsite.verify.suites.storage_mounts import Folder, Mounts, left_out, mounts, shared_folders

NO_REFERENCE = "measured; no reference to hold it against"
_MIB = 2**20
_MEMORY_MIB = 384
# Nodes that load a folder at once, and those of them that do so alone before.
_NODES, _ALONE = 64, 2
_DEPTH = 8
_SHELL = """
engine=psync
fio --enghelp 2>/dev/null | grep -qw libaio && engine=libaio
exec fio --ioengine=$engine "$@"
"""
_PATTERNS = (
    ("sequential_write", "write", "1m"),
    ("sequential_read", "read", "1m"),
    ("random_write", "randwrite", "4k"),
    ("random_read", "randread", "4k"),
)
_BLOCK_BYTES = {"1m": _MIB, "4k": 4096}
# fio has them since 3.3 (2017), 3.18 (2020) and 3.27 (2021).
_ENGINES = {"create": "filecreate", "stat": "filestat", "delete": "filedelete"}


@dataclass(frozen=True)
class Load:
    """How much is done: little where virtual machines share a computer."""

    file_mib: int
    seconds: int
    meta_files: int


def load_of(context: Context) -> Load:
    """Return the load for a lab or a real site."""
    return Load(16, 2, 150) if context.site.keys.lab else Load(1024, 10, 2000)


def one_a_file_system(folders: Iterable[Folder]) -> list[Folder]:
    """Leave out folders on a file system that is measured already: same server, size and inodes."""
    seen: dict[tuple[object, ...], Folder] = {}
    for folder in folders:
        size, blocks, _, inodes = folder.blocks
        seen.setdefault((folder.server, size, blocks, inodes), folder)
    return list(seen.values())


def clients(context: Context, folder: Folder) -> list[str]:
    """Compute nodes that load a folder."""
    nodes = {target.name for target in context.cluster.targets}
    return [host for host in folder.hosts if host in nodes][:_NODES]


def find_throughput(context: Context) -> Finding:
    """Write and read with fio, on nodes alone and on all at once."""
    found, load = mounts(context), load_of(context)
    folders = one_a_file_system(shared_folders(found, 1))
    tally, steps = Tally(unknown=left_out(found)), []
    for folder in list(folders):
        nodes = clients(context, folder)
        size, _, free, _ = folder.blocks
        if size * free < 10 * load.file_mib * _MIB * len(nodes):
            tally.unknown.append(f"{folder.path}: too little space is free to measure there")
            folders.remove(folder)
            continue
        steps += throughput_steps(folder, nodes, work_folder(context, folder, "fio"), load)
    session, nodes = _session(context, found, folders, steps, "throughput", tally)
    measured = []
    for folder in folders:
        ring = clients(context, folder)
        if did_it(folder, session, "make", tally, ring[:1]):
            for key, group in _groups(ring):
                runs = fio_runs(context, folder, session, key, group, tally)
                measured += bandwidths(folder, group, runs, load, tally)
    return tally.finding(nodes, reason=NO_REFERENCE, measurements=measured)


def _session(
    context: Context,
    found: Mounts,
    folders: Sequence[Folder],
    steps: Sequence[Said],
    name: str,
    tally: Tally,
) -> tuple[Session, list[str]]:
    """Lead the nodes that load some folder."""
    wanted = {node for folder in folders for node in clients(context, folder)}
    targets = tuple(target for target in found.crew.targets if target.name in wanted)
    crew = type(found.crew)(targets)
    if not steps:
        return Session(), []
    lasts = sum(float(one["timeout_s"]) for one in steps)
    session = lead(context, crew, steps, name=name, lasts_s=lasts, memory_mib=_MEMORY_MIB)
    tally.unknown += session.absent.values()
    return session, list(crew.hosts)


def _groups(nodes: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Name the loads: some nodes alone, then all at once."""
    alone = [(f"alone {node}", [node]) for node in nodes[:_ALONE]]
    return [*alone, ("at once", list(nodes))] if len(nodes) > 1 else alone


def throughput_steps(folder: Folder, nodes: Sequence[str], work: str, load: Load) -> list[Said]:
    """One fio for all patterns, one after the other, for each group of nodes."""
    steps = [step("make", folder.path, "make", nodes, folder=work, only=[0])]
    # Each pattern takes its time; the first run also lays the file out.
    within = 3 * len(_PATTERNS) * (load.seconds + 2)
    for key, group in _groups(nodes):
        only = [nodes.index(node) for node in group]
        argv = ["sh", "-c", _SHELL, "throughput", *throughput_argv(load)]
        more = {"folder": work, "argv": argv, "only": only, "timeout_s": within}
        steps.append(step("run", folder.path, key, nodes, **more))
    return steps


def throughput_argv(load: Load) -> list[str]:
    """Options of fio, from those for all jobs to each job's own."""
    argv = [
        "--output-format=json",
        "--filename=fio-{name}",
        f"--size={load.file_mib}m",
        "--direct=1",
        f"--iodepth={_DEPTH}",
        "--time_based=1",
        f"--runtime={load.seconds}",
        "--end_fsync=1",
        "--thread",
    ]
    for name, pattern, block in _PATTERNS:
        argv += [f"--name={name}", f"--rw={pattern}", f"--bs={block}", "--stonewall"]
    return argv


def fio_runs(
    context: Context, folder: Folder, session: Session, key: str, nodes: Sequence[str], tally: Tally
) -> dict[str, FioRun]:
    """Read what fio said on each node; faults go into the tally."""
    said = session.of(step_id(folder.path, key))
    runs = {}
    for node in nodes:
        answer = said.get(node)
        if answer is None or "silent" in answer:
            tally.unknown.append(f"{node}: no answer to fio on {folder.path} ({key})")
            continue
        if why := fault(answer):
            tally.wrong.append(f"{node}: fio on {folder.path} ({key}): {why}")
            continue
        if "stdout" in answer:
            file = f"fio-{key}-{node}{folder.path}".replace("/", "-").replace(" ", "-")
            context.evidence.keep(f"{file}.txt", answer["stdout"] + answer["stderr"])
        try:
            runs[node] = read_run(answer)
        except FioError as error:
            where = tally.wrong if failed_writing(answer) else tally.unknown
            where.append(f"{node}: {folder.path} ({key}): {error}")
    return runs


def read_run(answer: Said) -> FioRun:
    """Read one run; raises `FioError` for one that failed."""
    if "missing" in answer or answer["rc"] == 127:
        raise FioError("fio is not installed; the role verify_tools installs it")
    errors = [line.strip() for line in answer["stderr"].splitlines() if line.strip()]
    if answer["rc"] and errors:
        raise FioError(errors[0])
    run = read_fio(answer["stdout"])
    if failed := [job.name for job in run.jobs.values() if job.error]:
        raise FioError(f"fio failed in {', '.join(failed)}")
    return run


def failed_writing(answer: Said) -> bool:
    """Whether fio met an error of the file system, rather than one of its own."""
    text = f"{answer.get('stdout', '')}{answer.get('stderr', '')}"
    signs = ("Read-only file system", "Input/output error", "No space left", "Stale file handle")
    return any(sign in text for sign in signs)


def bandwidths(
    folder: Folder, nodes: Sequence[str], runs: Mapping[str, FioRun], load: Load, tally: Tally
) -> list[Measurement]:
    """Sum up what nodes moved; a node that moved nothing is a fault."""
    measured = []
    for name, _, block in _PATTERNS:
        jobs = {node: run.jobs[name] for node, run in runs.items() if name in run.jobs}
        idle = [node for node, job in jobs.items() if job.ios <= 0 or job.bytes_per_s <= 0]
        tally.wrong += [f"{node}: {folder.path}: fio moved nothing in {name}" for node in idle]
        if len(jobs) == len(nodes) and not idle:
            measured.append(_bandwidth(folder, name, block, jobs, load))
    return measured


def _bandwidth(
    folder: Folder, name: str, block: str, jobs: Mapping[str, FioJob], load: Load
) -> Measurement:
    random = name.startswith("random")
    value = sum(job.iops if random else job.bytes_per_s / 1e6 for job in jobs.values())
    return Measurement(
        name=name,
        value=round(value, 3),
        unit="IOPS" if random else "MB/s",
        direction=Direction.HIGHER,
        at={
            "export": folder.path,
            "nodes": ",".join(jobs),
            "block_bytes": _BLOCK_BYTES[block],
            "file_mib": load.file_mib,
            "direct": 1,
        },
    )


def find_metadata(context: Context) -> Finding:
    """Create, stat and delete files with fio's engines, on all nodes at once."""
    found, load = mounts(context), load_of(context)
    folders = one_a_file_system(shared_folders(found, 1))
    tally, steps, notes = Tally(unknown=left_out(found)), [], []
    for folder in folders:
        work, nodes = work_folder(context, folder, "metadata"), clients(context, folder)
        steps += metadata_steps(folder, nodes, work, load)
    session, nodes = _session(context, found, folders, steps, "metadata", tally)
    measured: list[Measurement] = []
    for folder in folders:
        ring = clients(context, folder)
        if not did_it(folder, session, "make", tally, ring[:1]):
            continue
        for what, engine in _ENGINES.items():
            said = session.of(step_id(folder.path, what))
            if old := [n for n, one in said.items() if lacks_engine(one.get("stderr", ""))]:
                notes.append(f"{', '.join(sorted(old))}: this fio has no engine {engine}")
                continue
            runs = fio_runs(context, folder, session, what, ring, tally)
            measured += _operations(folder, what, ring, runs, tally)
    if notes and not measured:
        tally.unknown += notes
    reason = "; ".join(dict.fromkeys([*notes, NO_REFERENCE]))
    return tally.finding(nodes, reason=reason, measurements=measured)


def metadata_steps(folder: Folder, nodes: Sequence[str], work: str, load: Load) -> list[Said]:
    """Return a step for each engine; the files of the last two are made before the clock runs."""
    steps = [step("make", folder.path, "make", nodes, folder=work, only=[0])]
    for what, engine in _ENGINES.items():
        argv = [
            "fio",
            "--output-format=json",
            f"--name={what}",
            f"--filename_format={what}-{{name}}.$filenum",
            f"--ioengine={engine}",
            f"--nrfiles={load.meta_files}",
            "--filesize=4k",
            "--bs=4k",
            "--openfiles=1",
            "--fallocate=none",
            "--thread",
            *(["--create_on_open=1"] if what == "create" else []),
            *(["--unlink=0"] if what == "delete" else []),
        ]
        more = {"folder": work, "argv": argv, "timeout_s": 30}
        steps.append(step("run", folder.path, what, nodes, **more))
    return steps


def _operations(
    folder: Folder, what: str, nodes: Sequence[str], runs: Mapping[str, FioRun], tally: Tally
) -> list[Measurement]:
    jobs = {node: run.jobs[what] for node, run in runs.items() if what in run.jobs}
    idle = [node for node, job in jobs.items() if job.iops <= 0]
    tally.wrong += [f"{node}: {folder.path}: fio did nothing in {what}" for node in idle]
    if idle or len(jobs) != len(nodes):
        return []
    value = round(sum(job.iops for job in jobs.values()), 3)
    at: dict[str, str | int | float] = {
        "export": folder.path,
        "nodes": ",".join(jobs),
        "files": min(job.ios for job in jobs.values()),
    }
    name = f"file_{what}"
    return [Measurement(name=name, value=value, unit="ops/s", direction=Direction.HIGHER, at=at)]
