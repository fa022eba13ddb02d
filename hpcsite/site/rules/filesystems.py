"""BeeGFS and Lustre: servers, clients and file systems belong together."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hpcsite.errors import Problem
from hpcsite.site.draft import Draft
from hpcsite.site.names import did_you_mean, fold
from hpcsite.site.sources import KeyPath

_KINDS = {"beegfs": "BeeGFS", "lustre": "Lustre"}
# Groups of servers, and the field of an entry that names their hosts.
_SERVERS = {
    "beegfs": {"beegfs_mgmtd": "mgmtd", "beegfs_meta": "meta", "beegfs_storage": "storage"},
    "lustre": {"lustre_mgs": "mgs", "lustre_mds": "mdts", "lustre_oss": "osts"},
}


@dataclass(frozen=True)
class Server:
    """A host that an entry names as a server, and the group that makes it one."""

    host: str
    group: str
    called: str
    path: KeyPath


def _servers(draft: Draft, key: str) -> Iterator[Server]:
    for number, system in draft.entries(key):
        called = f"the {_KINDS[key]} {draft.called(key, number)}"
        for group, name in _SERVERS[key].items():
            path: KeyPath = (f"site_{key}", number, name)
            value: Any = getattr(system, name)
            if isinstance(value, str):
                yield Server(value, group, called, path)
                continue
            for index, target in draft.numbered(path, value or ()):
                if target.host:
                    yield Server(target.host, group, called, (*path, index, "host"))


def parts_belong_together(draft: Draft) -> Iterator[Problem]:
    """Check that there are file systems, servers and clients, or none of the three."""
    groups = draft.inventory.groups
    for key, kind in _KINDS.items():
        variable = f"site_{key}"
        there = bool(draft.raw.get(variable))
        for group in (*_SERVERS[key], f"{key}_client"):
            if groups.get(group) and not there and draft.is_whole(key):
                what = "mount" if group.endswith("client") else "serve"
                yield draft.group_problem(
                    f"{group} has hosts, and there is no {kind} for them to {what}",
                    group,
                    f"describe the file system in {variable}, or take the group out",
                    code="HPC1425",
                )
        if there and not groups.get(f"{key}_client"):
            yield draft.problem(
                f"{variable} describes a {kind}, and no host mounts it",
                (variable,),
                f"put hosts into the group {key}_client",
                code="HPC1426",
            )


def names_are_distinct(draft: Draft) -> Iterator[Problem]:
    """No two file systems of a kind have one name."""
    for key, kind in _KINDS.items():
        first: dict[str, int] = {}
        for number, system in draft.entries(key, "name"):
            before = first.setdefault(system.name, number)
            if before != number:
                yield draft.problem(
                    f"there is a {kind} {system.name} already",
                    (f"site_{key}", number, "name"),
                    f"give each its own name; the other is site_{key}[{before}]",
                    code="HPC1427",
                )


def servers_are_in_their_groups(draft: Draft) -> Iterator[Problem]:
    """Each server that a file system names is one by its group."""
    groups, hosts = draft.inventory.groups, draft.inventory.hosts
    for key in _KINDS:
        for server in _servers(draft, key):
            members = groups.get(server.group, frozenset())
            if server.host in members:
                continue
            if server.host in hosts:
                hint = f"put {server.host} into {server.group}, or name a host that is there"
                what = f"is not in {server.group}"
            else:
                hint = did_you_mean(
                    server.host,
                    members or hosts,
                    f"one of {fold(members)}" if members else f"add the host to {server.group}",
                )
                what = "is no host of the inventory"
            yield draft.problem(
                f"{server.called}: {server.host} {what}", server.path, hint, code="HPC1428"
            )


def members_have_file_systems(draft: Draft) -> Iterator[Problem]:
    """Each server by its group is one of some file system."""
    for key, kind in _KINDS.items():
        used: dict[str, set[str]] = {}
        for server in _servers(draft, key):
            used.setdefault(server.group, set()).add(server.host)
        for group, name in _SERVERS[key].items():
            members = draft.inventory.groups.get(group, frozenset())
            # A BeeGFS without mgmtd has the only host of the group.
            idle = members - used.get(group, set()) if used.get(group) else frozenset()
            if idle and draft.is_whole(key, name):
                yield draft.group_problem(
                    f"{group} has hosts that no {kind} of site_{key} names: {fold(idle)}",
                    group,
                    f"name them in `{name}` of an entry, or take them out of the group",
                    code="HPC1429",
                )


def beegfs_has_one_mgmtd(draft: Draft) -> Iterator[Problem]:
    """Each BeeGFS has one management service, named where there are several."""
    members = draft.inventory.groups.get("beegfs_mgmtd", frozenset())
    for number, system in draft.entries("beegfs", "mgmtd"):
        if system.mgmtd is None and len(members) != 1:
            which = f"which of {fold(members)}" if members else "which host"
            yield draft.problem(
                f"the BeeGFS {draft.called('beegfs', number)} does not say {which} has its mgmtd",
                ("site_beegfs", number),
                "add `mgmtd:` with the host's name"
                if members
                else "put a host into the group beegfs_mgmtd",
                code="HPC1430",
            )


RULES = (
    parts_belong_together,
    names_are_distinct,
    servers_are_in_their_groups,
    members_have_file_systems,
    beegfs_has_one_mgmtd,
)
