"""Check `storage/throughput`: how fast shared folders are written and read.

fio reads and writes past the node's page cache (O_DIRECT, see open(2) for what NFS makes of it):
what is measured is the network, the server, and for reads the server's memory. No figure is held
against anything here: no reference is known for a lab, and a site has its own.
"""

from collections.abc import Mapping, Sequence

from hpcsite.site.names import fold
from hpcsite.verify.context import Context
from hpcsite.verify.findings import Finding, Tally
from hpcsite.verify.fio import FioJob, FioRun
from hpcsite.verify.results import Direction, Measurement
from hpcsite.verify.session import Said, step
from hpcsite.verify.suites.storage_coherence import did_it, work_folder
from hpcsite.verify.suites.storage_fio import (
    MIB,
    NO_REFERENCE,
    Load,
    clients,
    fio_runs,
    fitting,
    lacking,
    lead_nodes,
    load_of,
    one_a_file_system,
)
from hpcsite.verify.suites.storage_mounts import Folder, left_out, mounts, shared_folders

# Of the nodes that load a folder at once, those that do so alone before.
_ALONE = 2
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
_BLOCK_BYTES = {"1m": MIB, "4k": 4096}


def find_throughput(context: Context) -> Finding:
    """Write and read with fio, on nodes alone and on all at once."""
    found = mounts(context)
    folders = one_a_file_system(shared_folders(found, 1))
    tally, steps = Tally(unknown=left_out(found)), []
    most = load_of(context)
    loads = {f.path: fitting(most, f, clients(context, f)) for f in folders}
    for folder in folders:
        load = loads[folder.path]
        work = work_folder(context, folder, "fio")
        steps += throughput_steps(folder, clients(context, folder), work, load)
    session, nodes = lead_nodes(context, found, folders, steps, "throughput", tally)
    measured = []
    for folder in folders:
        ring = clients(context, folder)
        if did_it(folder, session, "make", tally, ring[:1]):
            for key, group in _groups(ring):
                runs = fio_runs(context, folder, session, key, group, tally)
                measured += bandwidths(folder, group, runs, loads[folder.path], tally)
    if not measured and not tally.wrong and not tally.unknown:
        tally.unknown.append("no compute node could measure a shared folder")
    return tally.finding(nodes, reason=NO_REFERENCE, measurements=measured)


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


def bandwidths(
    folder: Folder, nodes: Sequence[str], runs: Mapping[str, FioRun], load: Load, tally: Tally
) -> list[Measurement]:
    """Sum up what nodes moved; a node that moved nothing is a fault."""
    measured = []
    for name, _, block in _PATTERNS:
        jobs = {node: run.jobs[name] for node, run in runs.items() if name in run.jobs}
        tally.unknown += lacking(folder, name, runs, jobs)
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
            "nodes": fold(jobs),
            "block_bytes": _BLOCK_BYTES[block],
            "file_mib": load.file_mib,
            "direct": 1,
        },
    )
