"""What both checks that measure shared folders with fio have in common."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hpcsite.verify.context import Context
from hpcsite.verify.findings import Tally
from hpcsite.verify.parsers import UnreadableError
from hpcsite.verify.parsers.fio import FioRun, read_fio
from hpcsite.verify.session import Crew, Said, Session, fault, lead, step_id
from hpcsite.verify.suites.storage_mounts import Folder, Mounts

NO_REFERENCE = "measured; no reference to hold it against"
MIB = 2**20
_MEMORY_MIB = 384
_LEAST_MIB = 16
# Nodes that load a folder at once.
_NODES = 64


@dataclass(frozen=True)
class Load:
    """How much is done: little where virtual machines share a computer."""

    file_mib: int
    seconds: int
    meta_files: int
    small_files: int


def load_of(context: Context) -> Load:
    """Return the load for a lab or a real site."""
    return Load(16, 2, 50, 400) if context.site.keys.lab else Load(1024, 10, 1000, 4000)


def fitting(load: Load, folder: Folder, nodes: Sequence[str]) -> Load:
    """Take smaller files where all nodes' together would fill a tenth of what is free."""
    size, _, free, _ = folder.blocks
    most = size * free // (10 * MIB * max(len(nodes), 1))
    return replace(load, file_mib=max(min(load.file_mib, most), _LEAST_MIB))


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


def lead_nodes(
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
    crew = Crew(targets)
    if not steps:
        return Session(), []
    lasts = sum(float(one["timeout_s"]) for one in steps)
    session = lead(context, crew, steps, name=name, lasts_s=lasts, memory_mib=_MEMORY_MIB)
    tally.unknown += session.absent.values()
    return session, list(crew.hosts)


def fio_runs(
    context: Context, path: str, session: Session, key: str, nodes: Sequence[str], tally: Tally
) -> dict[str, FioRun]:
    """Read what fio said on each node; faults go into the tally."""
    said = session.of(step_id(path, key))
    runs = {}
    for node in nodes:
        answer = said.get(node)
        if answer is None or "silent" in answer:
            tally.unknown.append(f"{node}: no answer to fio on {path} ({key})")
            continue
        if why := fault(answer):
            # Too slow for so much work is not yet wrong; a folder that hangs fails `mounts`.
            where = tally.unknown if "slow" in answer else tally.wrong
            where.append(f"{node}: fio on {path} ({key}): {why}")
            continue
        if "stdout" in answer:
            file = f"fio-{key}-{node}{path}".replace("/", "-").replace(" ", "-")
            context.evidence.keep(f"{file}.txt", answer["stdout"] + answer["stderr"])
        try:
            runs[node] = read_run(answer)
        except UnreadableError as error:
            where = tally.wrong if failed_writing(answer) else tally.unknown
            where.append(f"{node}: {path} ({key}): {error}")
    return runs


def read_run(answer: Said) -> FioRun:
    """Read one run; raises `UnreadableError` for one that failed."""
    if "missing" in answer or answer["rc"] == 127:
        raise UnreadableError("fio is not installed; the role verify_tools installs it")
    errors = [line.strip() for line in answer["stderr"].splitlines() if line.strip()]
    if answer["rc"] and errors:
        raise UnreadableError(errors[0])
    run = read_fio(answer["stdout"])
    if failed := [job.name for job in run.jobs.values() if job.error]:
        raise UnreadableError(f"fio failed in {', '.join(failed)}")
    if answer["rc"]:
        raise UnreadableError(f"fio ended with {answer['rc']}")
    return run


def lacking(
    path: str, name: str, runs: Mapping[str, FioRun], jobs: Mapping[str, object]
) -> list[str]:
    """Say which runs tell nothing of a job that they had."""
    return [f"{node}: {path}: fio tells nothing of {name}" for node in runs.keys() - jobs]


def failed_writing(answer: Said) -> bool:
    """Whether fio met an error of the file system, rather than one of its own."""
    text = f"{answer.get('stdout', '')}{answer.get('stderr', '')}"
    signs = ("Read-only file system", "Input/output error", "No space left", "Stale file handle")
    return any(sign in text for sign in signs)
