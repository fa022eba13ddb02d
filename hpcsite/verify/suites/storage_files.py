"""Check `storage/many_files`: small files that one host makes, counted and read by others."""

from hpcsite.verify.context import Context
from hpcsite.verify.findings import Finding, Tally
from hpcsite.verify.results import Direction, Measurement
from hpcsite.verify.session import Said, Session, lead, step, step_id
from hpcsite.verify.suites.storage_coherence import did_it, work_folder
from hpcsite.verify.suites.storage_fio import load_of, one_a_file_system
from hpcsite.verify.suites.storage_mounts import Folder, left_out, mounts, shared_folders

_FOLDERS, _MOST_BYTES = 20, 2000
# Fewer prove nothing; a slow server is given its time, and what it made in it is compared.
_LEAST = 20
# So long for all folders together, to make the files and to read them again.
_WITHIN_S = 30


def find_many_files(context: Context) -> Finding:
    """Make files on one host; its neighbours in the ring find and read them all."""
    found = mounts(context)
    folders = one_a_file_system(shared_folders(found, 2))
    count = load_of(context).small_files
    steps = []
    for folder in folders:
        work = work_folder(context, folder, "files")
        steps += file_steps(folder, work, count, len(folders))
    lasts = 4 * _WITHIN_S
    session = lead(context, found.crew, steps, name="many-files", lasts_s=lasts)
    tally = Tally(unknown=[*left_out(found), *session.absent.values()])
    measured = [one for folder in folders for one in judge_files(folder, session, tally)]
    made = sum(int(one.at["files"]) for one in measured if one.name == "files_made")
    said = f"{made} of {count} files in the time for them" if made < count else ""
    return tally.finding(found.crew.hosts, reason=said, measurements=measured)


def readers_of(folder: Folder) -> list[int]:
    """Positions in the ring of those that read: both neighbours of the one that writes."""
    return sorted({1, len(folder.hosts) - 1})


def file_steps(folder: Folder, work: str, files: int, share: int) -> list[Said]:
    """Return the steps for one of `share` folders."""
    path, ring, seconds = folder.path, folder.hosts, _WITHIN_S / share
    common = {"folder": work, "file": "many", "seconds": seconds, "timeout_s": seconds + 10}
    count = {"folders": _FOLDERS, "count": files // share, "size": _MOST_BYTES}
    return [
        step("make", path, "make", ring, folder=work, only=[0]),
        step("fill", path, "fill", ring, **common, **count, only=[0]),
        step("survey", path, "survey", ring, **common, only=readers_of(folder)),
    ]


def judge_files(folder: Folder, session: Session, tally: Tally) -> list[Measurement]:
    """Hold what others found against what was made."""
    path, maker = folder.path, folder.hosts[0]
    for key in ("make", "fill"):
        if not did_it(folder, session, key, tally, [maker]):
            return []
    made = session.of(step_id(path, "fill"))[maker]
    measured = [_rate("files_made", folder, maker, made)]
    if made["count"] < _LEAST:
        took = f"{made['ms'] / 1000:.0f} s"
        tally.unknown.append(f"{maker}: {path}: too slow to tell: {made['count']} files in {took}")
    readers = [folder.hosts[position] for position in readers_of(folder)]
    for host in did_it(folder, session, "survey", tally, readers):
        said = session.of(step_id(path, "survey"))[host]
        if "unfinished" in said:
            took = f"{said['ms'] / 1000:.0f} s"
            tally.unknown.append(f"{host}: {path}: read {said['count']} files in {took}, not all")
        elif said["count"] != made["count"]:
            tally.wrong.append(
                f"{host}: {path}: sees {said['count']} of {made['count']} files that {maker} made"
            )
        elif said["sum"] != made["sum"]:
            tally.wrong.append(f"{host}: {path}: files that {maker} made have another content")
        else:
            measured.append(_rate("files_read", folder, host, said))
    return measured


def _rate(name: str, folder: Folder, host: str, said: Said) -> Measurement:
    return Measurement(
        name=name,
        value=round(said["count"] * 1000 / max(said["ms"], 1), 1),
        unit="files/s",
        direction=Direction.HIGHER,
        at={"export": folder.path, "nodes": host, "files": said["count"]},
    )
