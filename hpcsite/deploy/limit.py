"""`--limit` → the hosts that a deploy runs on."""

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetParseError

from hpcsite.errors import UsageError
from hpcsite.site.model import Site
from hpcsite.site.names import fold, nearest

# What the whole site hangs on: part of every deploy, and what stops it when it is broken.
CRITICAL_GROUPS = ("slurm_controller", "slurm_dbd", "mariadb", "nfs_server")


def critical_hosts(site: Site) -> frozenset[str]:
    """Names of the controller, database daemon, database and NFS server hosts."""
    return frozenset(host.name for group in CRITICAL_GROUPS for host in site.in_group(group))


def chosen_hosts(site: Site, limit: str | None) -> frozenset[str]:
    """Hosts that a limit names: node sets and groups, e.g. `gpu[03-04],login`; None: all.

    Raises `UsageError` for what is no node set, no host, no group, or a group without hosts.
    """
    if limit is None:
        return frozenset(site.hosts)
    chosen: set[str] = set()
    unknown: list[str] = []
    for name in _names(limit):
        members = _members(site, name)
        chosen |= members
        if not members:
            unknown.append(name)
    if unknown or not chosen:
        raise _unknown(site, limit, unknown)
    return frozenset(chosen)


def _names(limit: str) -> list[str]:
    try:
        return [str(name).removeprefix("@") for name in NodeSet(limit, resolver=RESOLVER_NOGROUP)]
    except NodeSetParseError as error:
        raise UsageError(
            f"--limit {limit}: {error}",
            hint="write nodes as Slurm does, and groups by name: --limit 'gpu[03-04],login'",
        ) from error


def _members(site: Site, name: str) -> frozenset[str]:
    if name in site.hosts:
        return frozenset([name])
    if name == "all":
        return frozenset(site.hosts)
    return frozenset(host.name for host in site.in_group(name))


def _unknown(site: Site, limit: str, unknown: list[str]) -> UsageError:
    known = {*site.hosts, *(group for host in site.hosts.values() for group in host.groups)}
    near = [match for name in unknown if (match := nearest(name, known))]
    hosts = f"the site's hosts are {fold(site.hosts)}"
    hint = f"did you mean {', '.join(dict.fromkeys(near))}? {hosts}" if near else hosts
    what = fold(unknown) if unknown else limit
    return UsageError(f"--limit {limit}: {site.name} has no host or group {what}", hint=hint)
