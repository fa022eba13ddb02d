"""Checks `storage/coherence` and `storage/locks`: what one host does, others see at once.

"At once" is what NFS promises, close-to-open (nfs(5), "Data and metadata coherence"): who opens a
file after another host has closed it sees all that was written. Names are not part of that: a
client believes those that it knows, present or missing, while its directory's attributes are fresh
(acdirmin to acdirmax, 30 to 60 s; lookupcache). So a new name is looked at that the reader has not
asked for before, and an old one only after its file is deleted, which the open itself finds out.
"""

from collections.abc import Iterator, Sequence

from hpcsite.verify.context import Context
from hpcsite.verify.findings import Finding, Tally
from hpcsite.verify.results import Direction, Measurement, Status
from hpcsite.verify.session import Said, Session, fault, lead, step, step_id
from hpcsite.verify.suites.storage_mounts import Folder, left_out, mounts, shared_folders

_SIZE, _TAIL = 65536, 4097
# How long a reader is given, once it was wrong at first: to tell late from never.
_WITHIN_MS = 5000
_LASTS_S = 90
_SIDES = ("prev", "next")
_KINDS = ("fcntl", "flock")
# What is done, and how each neighbour's is then looked at: key, operation, file, what was done.
_WRITES = (
    ("write", {"op": "put", "how": "new", "seed": "one", "size": _SIZE, "file": "c-{own}"}),
    ("overwrite", {"op": "put", "how": "over", "seed": "two", "size": _SIZE, "file": "c-{own}"}),
    ("append", {"op": "put", "how": "append", "seed": "end", "size": _TAIL, "file": "c-{own}"}),
    ("rename", {"op": "move", "file": "c-{own}", "to": "r-{own}"}),
    ("delete", {"op": "drop", "file": "r-{own}"}),
)
_LOOKS: dict[str, list[tuple[str, str, list[tuple[str, int]]]]] = {
    "write": [("get", "c", [("one", _SIZE)])],
    "overwrite": [("get", "c", [("two", _SIZE)])],
    "append": [("get", "c", [("two", _SIZE), ("end", _TAIL)])],
    "rename": [("get", "r", [("two", _SIZE), ("end", _TAIL)])],
    "delete": [("gone", "r", [])],
}
_DONE = {
    "write": "wrote",
    "overwrite": "wrote over",
    "append": "appended",
    "rename": "renamed",
    "delete": "deleted",
}


def work_folder(context: Context, folder: Folder, check: str) -> str:
    """Path of a check's own folder; removed also by the run's end if the submit host sees it."""
    path = f"{folder.base}/.{context.core.job_name}-{check}"
    if context.core.host.name in folder.hosts:
        context.core.leftovers.append(path)
    return path


def sides_of(hosts: Sequence[str]) -> tuple[str, ...]:
    """Neighbours that are looked at: with two hosts, both are the same."""
    return _SIDES if len(hosts) > 2 else _SIDES[:1]


def find_coherence(context: Context) -> Finding:
    """Look, from each host, at what its neighbours in a ring of all hosts did."""
    found = mounts(context)
    folders = [f for f in shared_folders(found, 2) if not f.option("nocto")]
    if not folders:
        return Finding(Status.SKIP, "every shared folder is mounted with nocto")
    steps = []
    for folder in folders:
        steps += coherence_steps(folder, work_folder(context, folder, "coherence"))
    session = lead(context, found.crew, steps, name="coherence", lasts_s=_LASTS_S)
    tally = Tally(unknown=[*left_out(found), *session.absent.values()])
    measured = [one for folder in folders for one in judge_coherence(folder, session, tally)]
    return tally.finding(found.crew.hosts, measurements=measured)


def coherence_steps(folder: Folder, work: str) -> list[Said]:
    """All hosts write at once, then all look: as many steps for two hosts as for hundreds."""
    ring, path = folder.hosts, folder.path
    steps = [step("make", path, "make", ring, folder=work, only=[0])]
    for key, what in _WRITES:
        steps.append(step(str(what["op"]), path, key, ring, **{**what, "folder": work}))
        for side, op, file, parts in _looks(ring, key):
            steps.append(
                step(
                    op,
                    path,
                    f"{key} {op} {side}",
                    ring,
                    folder=work,
                    file=f"{file}-{{{side}}}",
                    author=side,
                    parts=parts,
                    within_ms=_WITHIN_MS,
                )
            )
    return steps


def _looks(ring: Sequence[str], key: str) -> Iterator[tuple[str, str, str, list[tuple[str, int]]]]:
    for side in sides_of(ring):
        for op, file, parts in _LOOKS[key]:
            yield side, op, file, parts


def judge_coherence(folder: Folder, session: Session, tally: Tally) -> list[Measurement]:
    """Say who saw what late or never; the slowest look of each kind is the measurement."""
    made = did_it(folder, session, "make", tally, folder.hosts[:1])
    measured = []
    able = set(folder.hosts) if made else set()
    for key, _ in _WRITES:
        # Who failed once has nothing that others could see from then on.
        able &= did_it(folder, session, key, tally, [h for h in folder.hosts if h in able])
        times = []
        for side, op, _, _ in _looks(folder.hosts, key):
            said = session.of(step_id(folder.path, f"{key} {op} {side}"))
            for host in folder.hosts:
                if ahead(folder.hosts, host, side) in able:
                    times += _judge_look(folder, key, host, said.get(host), tally)
        if times:
            measured.append(_slowest(folder, key, *max(times)))
    return measured


def ahead(hosts: Sequence[str], host: str, side: str) -> str:
    """Return the neighbour of a host in the ring."""
    return hosts[(hosts.index(host) + (1 if side == "next" else -1)) % len(hosts)]


def did_it(
    folder: Folder, session: Session, key: str, tally: Tally, hosts: Sequence[str]
) -> set[str]:
    """Return the hosts that did a step; why others did not goes into the tally."""
    said = session.of(step_id(folder.path, key))
    for host in hosts:
        answer = said.get(host)
        if answer is None or "silent" in answer:
            tally.unknown.append(f"{host}: no answer to {key} on {folder.path}")
        elif why := fault(answer):
            tally.wrong.append(f"{host}: cannot {key} on {folder.path}: {why}")
    return {host for host in hosts if host in said and not _failed(said[host])}


def _failed(answer: Said) -> bool:
    return "silent" in answer or bool(fault(answer))


def _judge_look(
    folder: Folder, key: str, host: str, said: Said | None, tally: Tally
) -> list[tuple[float, str]]:
    if said is None or "silent" in said:
        tally.unknown.append(f"{host}: no answer to a look on {folder.path} after {key}")
        return []
    if why := fault(said):
        tally.wrong.append(f"{host}: cannot look on {folder.path} after {key}: {why}")
        return []
    what = f"{host}: what {said['author']} {_DONE[key]} on {folder.path} is not seen"
    if "never" in said:
        tally.wrong.append(f"{what} within {_WITHIN_MS / 1000:.0f} s: {said['never']}")
        return []
    if "first" in said:
        tally.wrong.append(f"{what} at once, but after {said['ms']:.0f} ms: {said['first']}")
    return [(float(said["ms"]), f"{said['author']},{host}")]


def _slowest(folder: Folder, key: str, milliseconds: float, pair: str) -> Measurement:
    return Measurement(
        name="seen_after_max",
        value=milliseconds,
        unit="ms",
        direction=Direction.LOWER,
        at={"export": folder.path, "after": key, "nodes": pair},
    )


def find_locks(context: Context) -> Finding:
    """See that a lock keeps neighbours out until it is released, or its holder has ended."""
    found = mounts(context)
    folders = [f for f in shared_folders(found, 2) if not f.option("nolock", "local_lock")]
    if not folders:
        return Finding(Status.SKIP, "every shared folder is mounted with locks of its own host")
    steps = []
    for folder in folders:
        steps += lock_steps(folder, work_folder(context, folder, "locks"))
    session = lead(context, found.crew, steps, name="locks", lasts_s=_LASTS_S)
    tally = Tally(unknown=[*left_out(found), *session.absent.values()])
    for folder in folders:
        judge_locks(folder, session, tally)
    return tally.finding(found.crew.hosts)


def ring_of(folder: Folder, kind: str) -> tuple[str, ...]:
    """Hosts that see each other's locks.

    A client's flock is a lock of the whole file to the server (nfs(5), local_lock); a flock of the
    server itself is another thing.
    """
    return tuple(h for h in folder.hosts if kind == "fcntl" or h != folder.server)


def lock_steps(folder: Folder, work: str) -> list[Said]:
    """Hold, try, release, try again; and once more with a holder that is killed."""
    path = folder.path
    steps = [step("make", path, "make", folder.hosts, folder=work, only=[0])]
    for kind in _KINDS:
        ring = ring_of(folder, kind)
        common = {"folder": work, "file": f"{kind}-{{own}}", "kind": kind, "key": kind, "least": 2}
        for end in ("release", "kill"):
            steps.append(step("hold", path, f"{kind} hold {end}", ring, **common))
            steps += [
                _try(path, f"{kind} held {end} {side}", ring, common, side, 0)
                for side in sides_of(ring)
            ]
            steps.append(step(end, path, f"{kind} {end}", ring, **common))
            steps.append(_try(path, f"{kind} free {end}", ring, common, "prev", _WITHIN_MS))
    return steps


def _try(path: str, key: str, ring: Sequence[str], common: Said, side: str, within_ms: int) -> Said:
    more = {**common, "file": f"{common['kind']}-{{{side}}}", "author": side}
    return step("attempt", path, key, ring, **more, within_ms=within_ms)


def judge_locks(folder: Folder, session: Session, tally: Tally) -> None:
    """Say which lock did not keep others out, and which was not released."""
    if not did_it(folder, session, "make", tally, folder.hosts[:1]):
        return
    for kind in _KINDS:
        ring = ring_of(folder, kind)
        if len(ring) < 2:
            continue
        for end in ("release", "kill"):
            holders = did_it(folder, session, f"{kind} hold {end}", tally, ring)
            for side in sides_of(ring):
                key = f"{kind} held {end} {side}"
                for host, author, said in _tries(folder, session, key, ring, side, holders, tally):
                    if "never" not in said:
                        tally.wrong.append(
                            f"{host}: got the {kind} lock on {folder.path} that {author} holds"
                        )
            able = holders & did_it(folder, session, f"{kind} {end}", tally, ring)
            key = f"{kind} free {end}"
            for host, author, said in _tries(folder, session, key, ring, "prev", able, tally):
                if "never" in said:
                    how = "closed its file" if end == "release" else "was killed"
                    tally.wrong.append(
                        f"{host}: the {kind} lock on {folder.path} is not free "
                        f"{_WITHIN_MS / 1000:.0f} s after its holder on {author} {how}"
                    )


def _tries(
    folder: Folder,
    session: Session,
    key: str,
    ring: Sequence[str],
    side: str,
    holders: set[str],
    tally: Tally,
) -> Iterator[tuple[str, str, Said]]:
    """Yield who tried whose lock, and what came of it."""
    hosts = [host for host in ring if ahead(ring, host, side) in holders]
    said = session.of(step_id(folder.path, key))
    for host in did_it(folder, session, key, tally, hosts):
        yield host, ahead(ring, host, side), said[host]
