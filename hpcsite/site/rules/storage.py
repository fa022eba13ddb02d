"""NFS: server, exports and clients belong together; and all the rules of other storage."""

from collections.abc import Iterator

from hpcsite.errors import Problem
from hpcsite.site.draft import Draft
from hpcsite.site.names import did_you_mean, fold
from hpcsite.site.rules import filesystems, homes, mounts, targets
from hpcsite.site.rules.mounts import system_tree, within

_KEY = "nfs_exports"
_VERSION = "leave it out: hpcsite mounts NFS 4.2, which all supported systems have"
_TRANSPORT = "use `rdma: true` of the export in its place; without it, NFS runs over TCP"
_BOOT = "leave it out: hpcsite's mount units say when it is mounted, at boot or with `automount`"
_HARD = "leave it out: with another one, jobs would read or write wrong data when the server is out"
# Options of mount.nfs that hpcsite decides, with what to do instead.
_OWNED = {
    **dict.fromkeys(("vers", "nfsvers", "minorversion", "v3", "v4", "v4.0", "v4.1"), _VERSION),
    **dict.fromkeys(("proto", "port", "rdma", "tcp", "udp", "mountproto", "mountport"), _TRANSPORT),
    **dict.fromkeys(("ro", "rw"), "use `read_only` of the export in its place"),
    **dict.fromkeys(("hard", "soft", "softerr", "softreval"), _HARD),
    **dict.fromkeys(("bg", "fg", "retry", "auto", "noauto", "nofail", "_netdev", "user"), _BOOT),
    **dict.fromkeys(("remount", "bind", "defaults"), "leave it out"),
    "nconnect": "use nfs_client_nconnect in its place",
    "sec": "leave it out: hpcsite exports with sec=sys",
    "addr": "use site_address of the server in its place",
    "clientaddr": "leave it out: NFS 4.1 and newer do not use it",
}


def parts_belong_together(draft: Draft) -> Iterator[Problem]:
    """Check that there are exports, servers and clients, or none of the three."""
    groups = draft.inventory.groups
    exports = bool(draft.raw.get("site_nfs_exports"))
    for group, what in (("nfs_client", "mount"), ("nfs_server", "export")):
        if groups.get(group) and not exports and draft.is_whole(_KEY):
            yield draft.group_problem(
                f"{group} has hosts, and there is nothing for them to {what}",
                group,
                "list the shared folders in site_nfs_exports, or take the group out",
                code="HPC1401",
            )
    for group, what in (("nfs_server", "exports them"), ("nfs_client", "mounts them")):
        if exports and not groups.get(group):
            yield draft.problem(
                f"site_nfs_exports lists folders, and no host {what}",
                ("site_nfs_exports",),
                f"put hosts into the group {group}",
                code="HPC1402",
            )


def exports_have_one_server(draft: Draft) -> Iterator[Problem]:
    """Each export's server is one of nfs_server, named where there are several."""
    servers = sorted(draft.inventory.groups.get("nfs_server", ()))
    for number, export in draft.entries(_KEY, "server"):
        path = ("site_nfs_exports", number)
        if export.server is None and len(servers) > 1:
            yield draft.problem(
                f"{_called(draft, number)} does not say which of {fold(servers)} exports it",
                path,
                "add `server:` with the host's name",
                code="HPC1403",
            )
        elif export.server is not None and servers and export.server not in servers:
            yield draft.problem(
                f"{_called(draft, number)}: {export.server} is not in nfs_server",
                (*path, "server"),
                did_you_mean(export.server, servers, f"one of {fold(servers)}"),
                code="HPC1404",
            )


def folders_are_distinct(draft: Draft) -> Iterator[Problem]:
    """No folder is exported twice by one server, and no two are mounted in one place."""
    paths: dict[tuple[str | None, str], int] = {}
    mounts: dict[str, int] = {}
    servers = draft.inventory.groups.get("nfs_server", frozenset())
    only = next(iter(servers)) if len(servers) == 1 else None
    for number, export in draft.entries(_KEY, "path", "mount", "server"):
        where = ("site_nfs_exports", number)
        first = paths.setdefault((export.server or only, export.path), number)
        if first != number:
            yield draft.problem(
                f"{export.path} is exported twice by the same server",
                (*where, "path"),
                f"remove one of the two; the other is site_nfs_exports[{first}]",
                code="HPC1405",
            )
            continue
        first = mounts.setdefault(export.mount_point, number)
        if first != number:
            yield draft.problem(
                f"two exports are mounted on {export.mount_point}",
                (*where, "mount" if export.mount else "path"),
                f"give one of them another `mount`; the other is site_nfs_exports[{first}]",
                code="HPC1406",
            )


def exports_are_not_hidden(draft: Draft) -> Iterator[Problem]:
    """Check that no mount lies over, or above, what its host exports itself."""
    servers = draft.inventory.groups.get("nfs_server", frozenset())
    clients = draft.inventory.groups.get("nfs_client", frozenset())
    only = next(iter(servers)) if len(servers) == 1 else None
    exports = list(draft.entries(_KEY, "path", "mount", "server"))
    for number, export in exports:
        host = export.server or only
        for _, other in exports:
            mounted = other.mount_point
            here = (other.server or only) == host
            if other is export or not (other.mount if here else host in clients):
                continue
            if within(export.path, (mounted,)):
                yield draft.problem(
                    f"{export.path} of {host} cannot be exported: "
                    f"{other.path} is mounted there on {mounted}",
                    ("site_nfs_exports", number, "path"),
                    "keep what a server exports outside of all mount points, e.g. below /srv, "
                    "and say with `mount` where the hosts see it",
                    code="HPC1407",
                )


def folders_are_no_system_s(draft: Draft) -> Iterator[Problem]:
    """No mount hides, and no export gives away, what a machine needs of its own."""
    for number, export in draft.entries(_KEY, "path", "mount"):
        for name, folder in (("path", export.path), ("mount", export.mount)):
            if folder is not None and (tree := system_tree(folder)):
                what = "shared" if name == "path" else "mounted over"
                yield draft.problem(
                    f"{folder} cannot be {what}: {tree} is the system's own",
                    ("site_nfs_exports", number, name),
                    "choose a folder such as /home, /shared, /srv/… or /opt/…",
                    code="HPC1408",
                )


def options_are_not_hpcsite_s(draft: Draft) -> Iterator[Problem]:
    """No option says once more, or otherwise, what hpcsite decides itself."""
    for number, export in draft.entries(_KEY):
        path = ("site_nfs_exports", number, "options")
        for index, option in draft.numbered(path, export.options):
            name = option.partition("=")[0]
            hint = _BOOT if name.startswith("x-systemd.") else _OWNED.get(name)
            if hint:
                yield draft.problem(
                    f"{_called(draft, number)}: hpcsite itself sets the option {name}",
                    (*path, index),
                    hint,
                    code="HPC1409",
                )


def rdma_is_there(draft: Draft) -> Iterator[Problem]:
    """Check that an export over RDMA has a server and a client with RDMA."""
    groups = draft.inventory.groups
    rdma = groups.get("rdma", frozenset())
    servers = groups.get("nfs_server", frozenset())
    for number, export in draft.entries(_KEY, "rdma", "server"):
        if not export.rdma:
            continue
        server = {export.server} if export.server else set(servers)
        lacking = next(
            (
                what
                for what, hosts in (("no host", rdma), ("not its server", rdma & server))
                if not hosts
            ),
            None if rdma & groups.get("nfs_client", frozenset()) else "none of its clients",
        )
        if lacking:
            yield draft.problem(
                f"{_called(draft, number)} is to go over RDMA, and {lacking} is in the group rdma",
                ("site_nfs_exports", number, "rdma"),
                "put the server and the clients that have it into rdma, or leave `rdma` out",
                code="HPC1410",
            )


def folders_have_groups(draft: Draft) -> Iterator[Problem]:
    """Check that the group of a shared folder is described, and stays."""
    names = draft.names("groups")
    if names is None:
        return
    groups = draft.entries("groups", "name", "state")
    present = [group.name for _, group in groups if group.state == "present"]
    for number, export in draft.entries(_KEY, "group"):
        if export.group is not None and export.group not in present:
            yield draft.problem(
                f"{_called(draft, number)} is to belong to the unknown group {export.group}",
                ("site_nfs_exports", number, "group"),
                did_you_mean(export.group, present, f"add {export.group} to site_groups"),
                code="HPC1411",
            )


def homes_are_below_mounts(draft: Draft) -> Iterator[Problem]:
    """Check that no home folder is a mount point: the shared folder belongs to root."""
    mounts = {export.mount_point for _, export in draft.entries(_KEY, "path", "mount")}
    for number, user in draft.entries("users", "home", "name"):
        if (user.home or f"/home/{user.name}") in mounts:
            yield draft.problem(
                f"the home folder of {user.name} is a shared folder itself",
                ("site_users", number, "home" if user.home else "name"),
                "share the folder above it, or choose a home folder below it",
                code="HPC1412",
            )


def containers_cannot_share(draft: Draft) -> Iterator[Problem]:
    """Refuse NFS in a lab of containers: the kernel's server and mounts are not theirs."""
    lab = draft.keys.lab
    if lab is not None and lab.backend == "nspawn" and draft.raw.get("site_nfs_exports"):
        yield draft.problem(
            "a lab of containers has no NFS: they share this computer's kernel",
            ("site_nfs_exports",),
            "set `backend: qemu` in site_lab, or take site_nfs_exports out",
            code="HPC2007",
        )


def _called(draft: Draft, number: int) -> str:
    entry = draft.raw["site_nfs_exports"][number]
    export = entry.get("path") if isinstance(entry, dict) else None
    return f"the export {export}" if isinstance(export, str) else f"site_nfs_exports[{number}]"


RULES = (
    parts_belong_together,
    exports_have_one_server,
    folders_are_distinct,
    exports_are_not_hidden,
    folders_are_no_system_s,
    options_are_not_hpcsite_s,
    rdma_is_there,
    folders_have_groups,
    homes_are_below_mounts,
    containers_cannot_share,
    *mounts.RULES,
    *homes.RULES,
    *filesystems.RULES,
    *targets.RULES,
)
