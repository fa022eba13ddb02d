"""Check `storage/mounts`, and what the other checks of shared folders begin from.

Where each folder is mounted, and where the verify user may write on it, is asked once in a run.
"""

import errno
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hpcsite.site.model import Host, NfsExport, Site
from hpcsite.site.names import fold
from hpcsite.verify.context import Context
from hpcsite.verify.findings import Finding, NotMeasuredError, Tally
from hpcsite.verify.results import Direction, Measurement
from hpcsite.verify.session import Crew, Said, fault, lead, step, step_id

# What the roles mount with, unless an export's options say another.
VERSION = "4.2"
_STEP_S, _LASTS_S = 15, 60
# A server or a quota that refuses to write; other faults say that the user may not.
_NO_WRITING = (errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE)


@dataclass(frozen=True)
class Folder:
    """A shared folder: `hosts` of those `expected` can write below `base`.

    `blocks` are the block size, blocks, free blocks and inodes of its file system.
    """

    export: NfsExport
    server: str
    expected: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    base: str = ""
    blocks: tuple[int, ...] = ()

    @property
    def path(self) -> str:
        """Where every host sees it."""
        return self.export.mount_point

    def option(self, *names: str) -> bool:
        """Whether the site mounts it with one of these options."""
        given = {option.partition("=")[0] for option in self.export.options}
        return not given.isdisjoint(names)


@dataclass
class Mounts:
    """What is mounted where; the tally has what is wrong with it."""

    crew: Crew
    folders: tuple[Folder, ...] = ()
    tally: Tally = field(default_factory=Tally)
    measured: list[Measurement] = field(default_factory=list)


def exports(context: Context) -> str:
    """Need: the site declares shared folders, and compute nodes that mount them."""
    if not context.site.keys.nfs_exports:
        return "the site declares no site_nfs_exports"
    nodes = (host for host in context.site.in_group("slurm_compute") if _has_part(host))
    return "" if any(nodes) else "no compute node of the site is in nfs_client"


def writable_exports(context: Context) -> str:
    """Need: a folder that clients may write."""
    exports = context.site.keys.nfs_exports
    return "" if any(not one.read_only for one in exports) else "every shared folder is read-only"


def _has_part(host: Host) -> bool:
    return not host.groups.isdisjoint(("nfs_client", "nfs_server"))


def crew_of(context: Context) -> Crew:
    """Compute nodes that mount shared folders, and the submit host if it does or serves them."""
    site, here = context.site, context.core.host
    targets = tuple(t for t in context.cluster.targets if _has_part(site.hosts[t.name]))
    beside = "slurm_compute" not in here.groups and _has_part(here)
    return Crew(targets, here.name if beside else "")


def server_of(site: Site, export: NfsExport) -> str:
    """Return the host that exports a folder; validation holds that there is one."""
    return export.server or next((host.name for host in site.in_group("nfs_server")), "")


def mounts(context: Context) -> Mounts:
    """Ask all hosts once in a run."""
    return context.shared("storage-mounts", _ask)


def _ask(context: Context) -> Mounts:
    site, crew = context.site, crew_of(context)
    sharing = [host.name for host in site.in_group("slurm_compute") if _has_part(host)]
    blocked = context.cluster.reasons(sharing)
    if not crew.targets:
        raise NotMeasuredError("; ".join(blocked))
    probe = f".{context.core.job_name}"
    steps = []
    for export in site.keys.nfs_exports:
        ring = hosts_of(site, export, crew.hosts)
        path = export.mount_point
        asked = {"user": context.core.user, "probe": probe, "timeout_s": _STEP_S}
        steps.append(step("mounts", path, "mounts", ring, **asked))
    session = lead(context, crew, steps, name="mounts", lasts_s=_LASTS_S)
    found = Mounts(crew, tally=Tally(unknown=[*blocked, *session.absent.values()]))
    folders = []
    for export in site.keys.nfs_exports:
        ring = hosts_of(site, export, crew.hosts)
        said = session.of(step_id(export.mount_point, "mounts"))
        silent = [host for host in ring if host not in said and host not in session.absent]
        found.tally.unknown += [f"{host}: was not asked of {export.mount_point}" for host in silent]
        folders.append(judge(site, context.core.user, export, said, found))
    found.folders = tuple(folders)
    return found


def hosts_of(site: Site, export: NfsExport, hosts: Iterable[str]) -> list[str]:
    """Return the hosts that see a folder: clients, and its own server."""
    server = server_of(site, export)
    return [name for name in hosts if name == server or "nfs_client" in site.hosts[name].groups]


def judge(
    site: Site, user: str, export: NfsExport, said: Mapping[str, Said], found: Mounts
) -> Folder:
    """Read what hosts said of one folder: faults into `found`, and who can write where."""
    server, path = server_of(site, export), export.mount_point
    writers: dict[str, list[str]] = {}
    sizes: dict[str, tuple[int, ...]] = {}
    times: list[tuple[float, str]] = []
    for host, answer in said.items():
        wrong, unknown = host_faults(site, user, export, host, answer)
        found.tally.wrong += [f"{host}: {path} {what}" for what in wrong]
        found.tally.unknown += [f"{host}: {what}" for what in unknown]
        if "stat_ms" not in answer or (host != server and answer["mount"] is None):
            continue
        times.append((float(answer["stat_ms"]), host))
        if base := answer.get("writable"):
            writers.setdefault(base, []).append(host)
            sizes[host] = tuple(answer["blocks"])
    if times:
        found.measured.append(_answered(path, *max(times)))
    base = max(writers, key=lambda one: len(writers[one]), default="")
    expected = tuple(hosts_of(site, export, found.crew.hosts))
    # In the order of the inventory, whoever answered first.
    hosts = tuple(host for host in expected if host in writers.get(base, ()))
    # Clients count in larger blocks than the server itself, and are compared with each other.
    counted = min(hosts, key=lambda host: host == server, default="")
    return Folder(export, server, expected, hosts, base, sizes.get(counted, ()))


def host_faults(
    site: Site, user: str, export: NfsExport, host: str, answer: Said
) -> tuple[list[str], list[str]]:
    """Say what is wrong with a folder on one host, and what could not be tried."""
    if dead := fault(answer) or ("no answer" if "silent" in answer else ""):
        return [f"does not answer: {dead}"], []
    served_here = host == server_of(site, export)
    faults = [] if served_here else mount_faults(site, export, host, answer["mount"])
    if answer["mount"] is None and not served_here:
        return faults, []
    wrong, unknown = write_faults(export, answer, user, served_here=served_here)
    return faults + wrong, unknown


def _answered(path: str, milliseconds: float, host: str) -> Measurement:
    at: dict[str, str | int | float] = {"export": path, "nodes": host}
    return Measurement(
        name="statfs_max", value=milliseconds, unit="ms", direction=Direction.LOWER, at=at
    )


def mount_faults(
    site: Site, export: NfsExport, client: str, mount: Mapping[str, str] | None
) -> list[str]:
    """Say what is wrong with how a client has mounted a folder."""
    if mount is None:
        return ["is not mounted"]
    if not mount["type"].startswith("nfs"):
        return [f"is mounted as {mount['type']} from {mount['source']}, not by NFS"]
    faults = []
    host = site.hosts.get(server_of(site, export))
    names = {host.name, host.address, f"{host.name}.{site.keys.domain}"} if host else set()
    source, _, folder = mount["source"].rpartition(":")
    if source.strip("[]") not in names or folder != export.path:
        declared = f"{server_of(site, export)}:{export.path}"
        faults.append(f"is mounted from {mount['source']}, not from {declared}")
    options = dict(option.partition("=")[::2] for option in mount["options"].split(","))
    wanted = dict(option.partition("=")[::2] for option in export.options)
    version = wanted.get("vers") or wanted.get("nfsvers") or VERSION
    if not options.get("vers", "").startswith(version):
        faults.append(f"is mounted as NFS {options.get('vers', '?')}, not {version}")
    both = host is not None and "rdma" in host.groups & site.hosts[client].groups
    if export.rdma and both and options.get("proto") not in ("rdma", "rdma6"):
        faults.append(f"is mounted over {options.get('proto', '?')}, not rdma")
    flags = (*mount["flags"].split(","), *mount["options"].split(",")[:1])
    if "ro" in flags and not export.read_only:
        faults.append("is mounted read-only")
    return faults


def write_faults(
    export: NfsExport, answer: Said, user: str, *, served_here: bool
) -> tuple[list[str], list[str]]:
    """Say what is wrong with who can write a folder, and what could not be tried."""
    path, tried = export.mount_point, answer["tried"]
    refused = {number: text for number, text in tried.values() if number in _NO_WRITING}
    if export.read_only:
        open_to = answer.get("writable")
        return ([f"can be written in {open_to}"] if open_to and not served_here else []), []
    if refused:
        return [f"cannot be written: {'; '.join(refused.values())}"], []
    if answer.get("writable"):
        return [], []
    places = ", ".join(f"{folder} ({text})" for folder, (_, text) in tried.items())
    return [], [f"no folder on {path} that {user} may write: {places}; make {path}/{user} for it"]


def find_mounts(context: Context) -> Finding:
    """Every declared folder is mounted as declared, answers, and can be written if it should."""
    found = mounts(context)
    return found.tally.finding(found.crew.hosts, measurements=found.measured)


def shared_folders(found: Mounts, least: int) -> list[Folder]:
    """Folders that at least so many hosts can write; raises `NotMeasuredError` if there are none.

    What is wrong with a folder is a FAIL of `mounts`; other checks could not be run there.
    """
    writable = (folder for folder in found.folders if not folder.export.read_only)
    usable = [folder for folder in writable if len(folder.hosts) >= least]
    if not usable:
        faults = "; ".join(dict.fromkeys((*found.tally.wrong, *found.tally.unknown)))
        few = f"fewer than {least} hosts can write on a shared folder"
        raise NotMeasuredError(faults or few)
    return usable


def left_out(found: Mounts) -> list[str]:
    """Say what other checks miss, and where: it could not be measured there."""
    said = list(found.tally.unknown)
    for folder in found.folders:
        missing = [host for host in folder.expected if host not in folder.hosts]
        if missing and not folder.export.read_only:
            said.append(f"{fold(missing)}: {folder.path} cannot be used, see storage/mounts")
    return said
