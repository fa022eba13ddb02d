"""What must be the same on several hosts lies on a file system that these share."""

from collections.abc import Iterator

from hpcsite.errors import Problem
from hpcsite.site.draft import Draft
from hpcsite.site.model import User
from hpcsite.site.names import fold
from hpcsite.site.rules.mounts import SCRATCH, Mount, mounts, within

STATE_DIR = "slurmctld_state_dir"
_NAMED = 3


def _home(user: User) -> str:
    return user.home or f"/home/{user.name}"


def _users(draft: Draft) -> list[tuple[int, User]]:
    return [
        (number, user)
        for number, user in draft.entries("users", "home", "name", "state")
        if user.state == "present"
    ]


def _shared(draft: Draft) -> list[Mount]:
    """List what is not on a host's own disks, the innermost first."""
    shared = [mount for mount in mounts(draft) if mount.kind != SCRATCH]
    return sorted(shared, key=lambda mount: len(mount.point), reverse=True)


def _is_sure(draft: Draft) -> bool:
    """Whether all places of file systems are known, and they can be shared at all."""
    lab = draft.keys.lab
    places = (("nfs_exports", ("path", "mount")), ("beegfs", ("mount",)), ("lustre", ("mount",)))
    whole = all(draft.is_whole(key, *names) for key, names in places)
    return whole and not (lab is not None and lab.backend == "nspawn")


def _seen_by(folder: str, shared: list[Mount]) -> frozenset[str]:
    """Name the hosts on which a folder lies on a shared file system."""
    return frozenset().union(*(m.hosts for m in shared if within(folder, (m.point,))))


def homes_are_where_they_are_seen(draft: Draft) -> Iterator[Problem]:
    """No home is named by the path that only the server has of a shared folder."""
    exports = [e for _, e in draft.entries("nfs_exports", "path", "mount") if e.mount]
    shared = _shared(draft)
    for number, user in _users(draft):
        home = _home(user)
        export = next((e for e in exports if within(home, (e.path,))), None)
        if export and not _seen_by(home, shared):
            seen = export.mount + home.removeprefix(export.path)
            yield draft.problem(
                f"the home folder {home} of {user.name} is where the server of {export.path} has "
                f"it; the hosts see that on {export.mount}",
                ("site_users", number, "home" if user.home else "name"),
                f"write `home: {seen}`",
                code="HPC1415",
            )


def homes_are_shared(draft: Draft) -> Iterator[Problem]:
    """Doubt homes that differ between the hosts that users work on.

    A site that describes no file system at all has its homes from elsewhere, as far as is known.
    """
    shared = _shared(draft)
    if not shared or not _is_sure(draft):
        return
    groups = draft.inventory.groups
    needed = groups.get("slurm_compute", frozenset())
    if needed:
        needed |= groups.get("slurm_login", frozenset())
    served = [export.path for _, export in draft.entries("nfs_exports", "path") if export.mount]
    lacking: dict[tuple[str, frozenset[str]], list[tuple[int, User]]] = {}
    for number, user in _users(draft):
        home = _home(user)
        missing = needed - _seen_by(home, shared)
        if missing and not within(home, served):
            lacking.setdefault((home.rpartition("/")[0], missing), []).append((number, user))
    for (folder, missing), users in lacking.items():
        number, user = users[0]
        yield draft.problem(
            f"{_whose(users)} below {folder or '/'} on the own disk of each of {fold(missing)}",
            ("site_users", number, "home" if user.home else "name"),
            "share a folder for homes, e.g. /home in site_nfs_exports, with all nodes that jobs "
            "run on and that users log in to",
            code="HPC1416",
        )


def _whose(users: list[tuple[int, User]]) -> str:
    names = [user.name for _, user in users]
    more = len(names) - _NAMED
    named = ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
    one = len(names) == 1
    return f"the home folder{'' if one else 's'} of {named} {'is' if one else 'are'}"


def state_is_where_it_is_shared(draft: Draft) -> Iterator[Problem]:
    """Doubt a controller's state below a mount point of which it sees nothing.

    Where others stand by, it must be shared, which is a rule of its own (rules.backup).
    """
    if draft.inventory.groups.get("slurm_backup_controller"):
        return
    shared = _shared(draft)
    for host in sorted(draft.inventory.groups.get("slurm_controller", ())):
        folder = draft.inventory.hosts[host].get(STATE_DIR)
        if not isinstance(folder, str) or host in _seen_by(folder, shared):
            continue
        mount = next((m for m in shared if within(folder, (m.point,))), None)
        if mount:
            yield draft.problem(
                f"{STATE_DIR} is {folder}, and {host} has nothing mounted on {mount.point}: "
                "it is on its own disk",
                (STATE_DIR,),
                f"make {host} a client of {mount.called}, or choose a folder of its own disk",
                host,
                code="HPC1417",
            )


RULES = (homes_are_where_they_are_seen, homes_are_shared, state_is_where_it_is_shared)
