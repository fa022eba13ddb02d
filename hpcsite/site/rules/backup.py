"""Controllers that stand by: they take over what the first one knew, from a shared folder."""

from collections.abc import Iterator

from hpcsite.errors import Problem
from hpcsite.site.draft import Draft
from hpcsite.site.names import fold

CONTROLLER, BACKUP = "slurm_controller", "slurm_backup_controller"
STATE_DIR = "slurmctld_state_dir"
# The default of the role slurmctld; a test holds the two equal.
DEFAULT_STATE_DIR = "/var/spool/slurmctld"


def controllers_share_their_state(draft: Draft) -> Iterator[Problem]:
    """Check that all controllers keep their state in one folder that all of them mount."""
    backups = draft.inventory.groups.get(BACKUP, frozenset())
    firsts = draft.inventory.groups.get(CONTROLLER, frozenset())
    if not backups or not firsts:
        return
    controllers = sorted(firsts) + sorted(backups - firsts)
    folders = {host: _state_dir(draft, host) for host in controllers}
    first = folders[controllers[0]]
    other = next((host for host in controllers if folders[host] != first), None)
    if other is not None:
        yield draft.problem(
            f"{other} would keep Slurm's state in {folders[other]}, and {controllers[0]} in "
            f"{first}",
            (STATE_DIR,),
            f"set {STATE_DIR} once, in group_vars/all",
            other,
            code="HPC1235",
        )
        return
    yield from _shared(draft, first, controllers)


def _shared(draft: Draft, folder: str, controllers: list[str]) -> Iterator[Problem]:
    found = [(mount, hosts) for mount, hosts in _mounts(draft) if _within(folder, mount)]
    if not found:
        # With one of these broken, the folder may be below what is not known of it.
        if all(draft.is_whole(key) for key in ("nfs_exports", "beegfs", "lustre")):
            yield draft.group_problem(
                f"{folder} is on no shared file system: a controller that takes over from "
                f"{controllers[0]} would know of no job",
                BACKUP,
                f"set {STATE_DIR} to a folder below a mount that all controllers have",
                code="HPC1234",
            )
        return
    # The deepest mount is the one that is seen.
    mount, hosts = max(found, key=lambda entry: len(entry[0]))
    without = [host for host in controllers if host not in hosts]
    if without:
        yield draft.group_problem(
            f"{fold(without)} cannot write to {mount}, where Slurm's state {folder} lies",
            BACKUP,
            "put each controller into the group of the clients that mount it, not read-only",
            code="HPC1234",
        )
    for number, export in draft.entries("nfs_exports", "path", "mount", "server"):
        server = export.server or _only(draft.inventory.groups.get("nfs_server", frozenset()))
        if export.mount_point == mount and server in controllers:
            yield draft.problem(
                f"{server} is a controller and shares Slurm's state itself: when it fails, "
                "no other controller can take over",
                ("site_nfs_exports", number),
                f"keep {STATE_DIR} on a server that is none of {fold(controllers)}",
                code="HPC1236",
            )


def _mounts(draft: Draft) -> Iterator[tuple[str, frozenset[str]]]:
    """Pair the mount points of shared file systems with the hosts that can write there."""
    groups = draft.inventory.groups
    for _, export in draft.entries("nfs_exports", "path", "mount", "server", "read_only"):
        server = export.server or _only(groups.get("nfs_server", frozenset()))
        clients = frozenset() if export.read_only else groups.get("nfs_client", frozenset())
        yield export.mount_point, clients | ({server} if server else frozenset())
    for key in ("beegfs", "lustre"):
        for _, system in draft.entries(key, "mount"):
            yield system.mount, groups.get(f"{key}_client", frozenset())


def _state_dir(draft: Draft, host: str) -> str:
    return str(draft.inventory.hosts[host].get(STATE_DIR, DEFAULT_STATE_DIR)).rstrip("/")


def _only(hosts: frozenset[str]) -> str | None:
    return next(iter(hosts)) if len(hosts) == 1 else None


def _within(folder: str, tree: str) -> bool:
    return folder == tree or folder.startswith(f"{tree}/")


RULES = (controllers_share_their_state,)
