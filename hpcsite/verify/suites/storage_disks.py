"""The file systems on nodes' own disks: which there are to be, and what is wrong with them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hpcsite.site.model.storage import Scratch
from hpcsite.site.names import fold
from hpcsite.verify.context import Context
from hpcsite.verify.findings import Tally
from hpcsite.verify.judge.outliers import outliers
from hpcsite.verify.results import Direction, Property, Variant
from hpcsite.verify.session import Said, fault

USUAL = "/var/tmp"  # noqa: S108 - a folder of the run's own is made in it
GIB = 2**30
# A file system of another size has another disk, or lacks one.
_SIZE_FLOOR = 0.05
_MEMORY = ("tmpfs", "ramfs")
_ELSEWHERE = ("nfs", "nfs4", "lustre", "beegfs", "ceph", "gpfs", "9p", "virtiofs", "fuse.sshfs")


@dataclass(frozen=True)
class Place:
    """A path on nodes' own disks; `declared` is None where the site says nothing of it."""

    path: str
    nodes: tuple[str, ...]
    declared: Scratch | None = None


@dataclass(frozen=True)
class Disk:
    """What one node has there: a folder that the user may write, and the file system below it."""

    base: str
    file_system: str
    size: int
    free: int


def places(context: Context) -> list[Place]:
    """Return where nodes are looked at, each node at what is declared for it."""
    site = context.site
    found, left = [], [target.name for target in context.cluster.targets]
    for scratch in site.keys.scratch:
        wanted = set(scratch.groups)
        nodes = [node for node in left if site.hosts[node].groups & wanted]
        if nodes:
            found.append(Place(scratch.path, tuple(nodes), scratch))
    declared = {node for place in found for node in place.nodes}
    rest = tuple(node for node in left if node not in declared)
    return [*found, Place(USUAL, rest)] if rest else found


def judge_place(
    place: Place,
    nodes: Iterable[str],
    said: Mapping[str, Said],
    user: str,
    tally: Tally,
    without: list[str],
) -> dict[str, Disk]:
    """Read what nodes said of a place: their disks; faults into the tally, the diskless aside."""
    disks = {}
    for node in nodes:
        answer = said.get(node)
        if answer is None or "silent" in answer:
            tally.unknown.append(f"{node}: no answer about {place.path}")
            continue
        if why := fault(answer):
            where = tally.wrong if place.declared or "slow" in answer else tally.unknown
            where.append(f"{node}: {place.path} does not answer: {why}")
            continue
        kind = (answer.get("below") or {}).get("type", "?")
        if place.declared:
            tally.wrong += [f"{node}: {place.path} {w}" for w in _mount_faults(place, answer)]
        elif kind in (*_MEMORY, *_ELSEWHERE):
            without.append(f"{node}: {place.path} is {kind}")
            continue
        if not answer.get("writable"):
            tried = ", ".join(f"{path} ({text})" for path, (_, text) in answer["tried"].items())
            tally.unknown.append(
                f"{node}: no folder on {place.path} that {user} may write: {tried}"
            )
            continue
        if kind in (*_MEMORY, *_ELSEWHERE):
            continue
        size, blocks, free, _ = answer["blocks"]
        disks[node] = Disk(str(answer["writable"]), kind, size * blocks, size * free)
    if place.declared:
        sizes = {node: float(disk.size) for node, disk in disks.items()}
        tally.wrong += [
            f"{node}: {place.path} has {sizes[node] / GIB:,.0f} GiB, less than its peers"
            for node in outliers(sizes, Direction.HIGHER, floor=_SIZE_FLOOR)
        ]
    return disks


def _mount_faults(place: Place, answer: Said) -> list[str]:
    """Say what is wrong with how declared scratch is mounted."""
    mount, wanted = answer["mount"], place.declared
    if mount is None:
        return ["is not mounted"]
    found = []
    if wanted and mount["type"] != wanted.file_system:
        found.append(f"is {mount['type']}, not {wanted.file_system}")
    if "ro" in (*mount["flags"].split(","), *mount["options"].split(",")[:1]):
        found.append("is mounted read-only")
    return found


def properties_of(place: Place, disks: Mapping[str, Disk]) -> list[Property]:
    """Return kind and size of the file systems; those of a lab's machines are one and the same."""
    told = {
        "file system": {node: disk.file_system for node, disk in disks.items()},
        "size": {node: f"{disk.size / GIB:,.0f} GiB" for node, disk in disks.items()},
    }
    found = []
    for what, of in told.items():
        by_value: dict[str, list[str]] = {}
        for node, value in of.items():
            by_value.setdefault(value, []).append(node)
        ordered = sorted(by_value.items(), key=lambda one: -len(one[1]))
        variants = tuple(Variant(value=value, nodes=fold(nodes)) for value, nodes in ordered)
        if variants:
            found.append(Property(name=f"{place.path} {what}", variants=variants))
    return found
