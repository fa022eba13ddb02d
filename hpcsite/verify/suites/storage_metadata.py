"""Check `storage/metadata`: how many files a second are created, looked at and deleted."""

from collections.abc import Mapping, Sequence

from hpcsite.site.names import fold
from hpcsite.verify.context import Context
from hpcsite.verify.findings import Finding, Tally
from hpcsite.verify.parsers.fio import FioRun, lacks_engine
from hpcsite.verify.results import Direction, Measurement
from hpcsite.verify.session import Said, step, step_id
from hpcsite.verify.suites.storage_coherence import did_it, work_folder
from hpcsite.verify.suites.storage_fio import (
    NO_REFERENCE,
    Load,
    clients,
    fio_runs,
    lacking,
    lead_nodes,
    load_of,
    one_a_file_system,
)
from hpcsite.verify.suites.storage_mounts import Folder, left_out, mounts, shared_folders

# fio has these since 3.3 (2017), 3.18 (2020) and 3.27 (2021).
_CREATE_S = 15
_ENGINES = {"create": "filecreate", "stat": "filestat", "delete": "filedelete"}


def find_metadata(context: Context) -> Finding:
    """Create, stat and delete files with fio's engines, on all nodes at once."""
    found, load = mounts(context), load_of(context)
    folders = one_a_file_system(shared_folders(found, 1))
    tally, steps, notes = Tally(unknown=left_out(found)), [], []
    for folder in folders:
        work, nodes = work_folder(context, folder, "metadata"), clients(context, folder)
        steps += metadata_steps(folder, nodes, work, load)
    session, nodes = lead_nodes(context, found, folders, steps, "metadata", tally)
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
            runs = fio_runs(context, folder.path, session, what, ring, tally)
            measured += _operations(folder, what, ring, runs, tally)
    if not measured and not tally.wrong and not tally.unknown:
        tally.unknown += notes or ["no compute node could measure a shared folder"]
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
            f"--runtime={_CREATE_S}",
            "--thread",
            *(["--create_on_open=1"] if what == "create" else []),
            *(["--unlink=0"] if what == "delete" else []),
        ]
        more = {"folder": work, "argv": argv, "timeout_s": 3 * _CREATE_S}
        steps.append(step("run", folder.path, what, nodes, **more))
    return steps


def _operations(
    folder: Folder, what: str, nodes: Sequence[str], runs: Mapping[str, FioRun], tally: Tally
) -> list[Measurement]:
    jobs = {node: run.jobs[what] for node, run in runs.items() if what in run.jobs}
    tally.unknown += lacking(folder.path, what, runs, jobs)
    idle = [node for node, job in jobs.items() if job.iops <= 0]
    tally.wrong += [f"{node}: {folder.path}: fio did nothing in {what}" for node in idle]
    if idle or len(jobs) != len(nodes):
        return []
    value = round(sum(job.iops for job in jobs.values()), 3)
    at: dict[str, str | int | float] = {
        "export": folder.path,
        "nodes": fold(jobs),
        "files": min(job.ios for job in jobs.values()),
    }
    name = f"file_{what}"
    return [Measurement(name=name, value=value, unit="ops/s", direction=Direction.HIGHER, at=at)]
