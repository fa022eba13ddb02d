"""Mounts of all kinds: none hides another one, or what the machine needs to run."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hpcsite.errors import Problem
from hpcsite.site.draft import Draft, key_text
from hpcsite.site.names import fold
from hpcsite.site.sources import KeyPath

NFS = "NFS"
SCRATCH = "scratch"
# Folders that a machine needs of its own, with all that is below them …
_SYSTEM_TREES = (
    *("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/root"),
    *("/run", "/sbin", "/sys", "/tmp", "/usr", "/var"),  # noqa: S108 - nothing is written there
)
# … but for these, which the Filesystem Hierarchy Standard or custom leaves to a site …
_ALLOWED = ("/usr/local", "/var/opt", "/var/scratch", "/var/www")
# … and for these, which may be on disks of their own, though not on those of another host.
_OWN_DISKS = ("/tmp", "/var/tmp")  # noqa: S108 - nothing is written there


@dataclass(frozen=True)
class Mount:
    """A file system as its hosts see it. `path` is the key that says where."""

    kind: str
    called: str
    point: str
    hosts: frozenset[str]
    path: KeyPath


def mounts(draft: Draft) -> Iterator[Mount]:
    """List all file systems of the site, by kind and in the order of the inventory."""
    groups = draft.inventory.groups
    servers = groups.get("nfs_server", frozenset())
    clients = groups.get("nfs_client", frozenset())
    for number, export in draft.entries("nfs_exports", "path", "mount", "server"):
        key = "mount" if export.mount else "path"
        path: KeyPath = ("site_nfs_exports", number, key)
        # The server sees the folder there too: it lies there, or is mounted like everywhere.
        hosts = clients | (frozenset((export.server,)) if export.server else servers)
        yield Mount(NFS, f"the export {export.path}", export.mount_point, hosts, path)
    for key, kind in (("beegfs", "BeeGFS"), ("lustre", "Lustre")):
        clients = groups.get(f"{key}_client", frozenset())
        for number, system in draft.entries(key, "mount"):
            called = f"the {kind} {draft.called(key, number)}"
            yield Mount(kind, called, system.mount, clients, (f"site_{key}", number, "mount"))
    for number, scratch in draft.entries("scratch", "path"):
        hosts = hosts_of(draft, scratch.groups)
        path = ("site_scratch", number, "path")
        yield Mount(SCRATCH, key_text(path[:2]), scratch.path, hosts, path)


def hosts_of(draft: Draft, groups: Iterable[str] | None) -> frozenset[str]:
    """Name the hosts of several groups, of which one may be all."""
    members = draft.inventory.groups
    found: set[str] = set()
    for group in groups or ():
        found.update(draft.inventory.hosts if group == "all" else members.get(group, ()))
    return frozenset(found)


def within(folder: str, trees: Iterable[str]) -> str | None:
    """Find the first of some folders that is a folder, or has it below."""
    return next((t for t in trees if folder == t or folder.startswith(f"{t}/")), None)


def above(folder: str) -> Iterator[str]:
    """Name all folders above one, but for /, the nearest first."""
    parts = folder.split("/")
    yield from ("/".join(parts[:end]) for end in range(len(parts) - 1, 1, -1))


def system_tree(folder: str) -> str | None:
    """Find the system's own folder that one is or lies in."""
    return None if within(folder, _ALLOWED) else within(folder, _SYSTEM_TREES)


def mounts_have_places(draft: Draft) -> Iterator[Problem]:
    """No host has two file systems at one place; two exports of NFS have a rule of their own."""
    for here in _by_point(draft).values():
        for position, mount in enumerate(here):
            other = _in_the_way(mount, here[:position])
            if other:
                yield draft.problem(
                    f"{other.called} and {mount.called} are both mounted on {mount.point} "
                    f"of {fold(mount.hosts & other.hosts)}",
                    mount.path,
                    f"give one of them another place; the other is {key_text(other.path[:2])}",
                    code="HPC1413",
                )


def mounts_stand_alone(draft: Draft) -> Iterator[Problem]:
    """Doubt a file system inside of another: it is gone whenever that one is out."""
    by_point = _by_point(draft)
    for mount in (mount for here in by_point.values() for mount in here):
        outer = (_in_the_way(mount, by_point.get(folder, ())) for folder in above(mount.point))
        other = next((found for found in outer if found), None)
        if other:
            yield draft.problem(
                f"{mount.called} is mounted on {mount.point}, inside of {other.called}: "
                "where that is out, or mounted later, nobody sees it",
                mount.path,
                f"choose a place outside of {other.point}",
                code="HPC1414",
            )


def mounts_hide_no_system(draft: Draft) -> Iterator[Problem]:
    """No file system hides what a machine needs; for exports of NFS, see rules of storage."""
    for mount in mounts(draft):
        if mount.kind == NFS or (mount.kind == SCRATCH and mount.point in _OWN_DISKS):
            continue
        if tree := system_tree(mount.point):
            yield draft.problem(
                f"{mount.point} cannot be mounted over: {tree} is the system's own",
                mount.path,
                "choose a folder such as /data, /scratch or /local",
                code="HPC1408",
            )


def _by_point(draft: Draft) -> dict[str, list[Mount]]:
    found: dict[str, list[Mount]] = {}
    for mount in mounts(draft):
        found.setdefault(mount.point, []).append(mount)
    return found


def _in_the_way(mount: Mount, others: Iterable[Mount]) -> Mount | None:
    """Find another file system that a host of a mount has; exports are no matter of each other."""
    return next(
        (
            other
            for other in others
            if not (mount.kind == other.kind == NFS) and not mount.hosts.isdisjoint(other.hosts)
        ),
        None,
    )


RULES = (mounts_have_places, mounts_stand_alone, mounts_hide_no_system)
