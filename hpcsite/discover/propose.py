"""Facts of hosts → what a starter inventory is written for."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address

from hpcsite.discover.alike import alike
from hpcsite.discover.describe import (
    candidates,
    gpu_type,
    hardware_of,
    notes,
    rdma_of,
    sure_profile,
)
from hpcsite.discover.facts import Facts
from hpcsite.errors import CouldNotRunError, UsageError
from hpcsite.site.catalogue import Catalogue
from hpcsite.site.names import did_you_mean
from hpcsite.site.rules.hosts import is_node_name
from hpcsite.site.starter import Machine, StarterGroup, values

# Interfaces that programs make on a host, whose addresses reach no other host.
_OWN = ("lo", "docker", "virbr", "br-", "veth", "cni", "flannel", "podman", "lxc", "vb-")


@dataclass(frozen=True)
class Roles:
    """Which hosts are no compute nodes; by their names, or by what ssh was given."""

    head: str
    logins: tuple[str, ...] = ()
    nfs_server: str = ""


@dataclass(frozen=True)
class Proposal:
    """The parts of a starter inventory that come from the hosts."""

    head: Machine
    logins: tuple[Machine, ...]
    nfs_server: Machine | None
    groups: tuple[StarterGroup, ...]


def node_names(hosts: Sequence[Facts]) -> dict[str, str]:
    """Name each host by its target: by its host name, or as ssh was given it where that says none.

    Raises `CouldNotRunError` where two are left with one name, or one with none.
    """
    shared = Counter(host.hostname.lower() for host in hosts)
    names: dict[str, str] = {}
    for host in hosts:
        given = host.target.partition(".")[0]
        own = is_node_name(host.hostname) and shared[host.hostname.lower()] == 1
        names[host.target] = host.hostname if own else given if is_node_name(given) else ""
    holders: dict[str, list[str]] = {}
    for target, name in names.items():
        holders.setdefault(name.lower(), []).append(target)
    wrong = [
        target for name, held in holders.items() if not name or len(held) > 1 for target in held
    ]
    if wrong:
        called = {host.target: host.hostname or "nothing" for host in hosts}
        raise CouldNotRunError(
            "these hosts have no name of their own: "
            + ", ".join(f"{target} (calls itself {called[target]})" for target in wrong),
            hint="give each a name of its own with `hostnamectl hostname NAME`, and name each "
            "machine once",
        )
    return names


def propose(
    hosts: Sequence[Facts], names: Mapping[str, str], roles: Roles, catalogue: Catalogue
) -> Proposal:
    """Make machines and node groups; raises `UsageError` for a role of no host."""
    machines = dict(zip(names, _machines(hosts, names), strict=True))
    head = _find(roles.head, "--head", names)
    logins = [_find(login, "--login", names) for login in roles.logins]
    server = _find(roles.nfs_server, "--nfs-server", names) if roles.nfs_server else None
    others = {head, server, *logins}
    compute = [host for host in hosts if host.target not in others]
    # A single machine, and one with login nodes only, does its own work.
    compute = compute or [host for host in hosts if host.target == head]
    groups = tuple(_groups(compute, names, machines, catalogue))
    # An adapter of another kind than the compute nodes have serves something else.
    modes = {group.rdma.mode for group in groups if group.rdma}

    def service(target: str) -> Machine:
        machine = machines[target]
        fits = machine.rdma is not None and machine.rdma.mode in modes
        return machine if fits else replace(machine, rdma=None)

    return Proposal(
        head=service(head),
        logins=tuple(service(login) for login in logins),
        nfs_server=service(server) if server else None,
        groups=groups,
    )


def _find(wanted: str, option: str, names: Mapping[str, str]) -> str:
    for target, name in names.items():
        if wanted in (target, name):
            return target
    raise UsageError(
        f"{option}: {wanted} is none of the hosts that answered",
        hint=did_you_mean(wanted, [*names, *names.values()], "name it among them too"),
    )


def _groups(
    hosts: Sequence[Facts],
    names: Mapping[str, str],
    machines: Mapping[str, Machine],
    catalogue: Catalogue,
) -> Iterator[StarterGroup]:
    taken: list[str] = []
    for group in alike(hosts):
        found = candidates(group, catalogue)
        profile = sure_profile(found)
        members = [names[host.target] for host in group]
        name = values.group_name(members, taken, profile)
        taken.append(name)
        yield StarterGroup(
            name,
            tuple(machines[host.target] for host in group),
            gpus=len(group[0].gpus),
            gpu_type=gpu_type(group, catalogue),
            profile=profile,
            hardware=hardware_of(group),
            rdma=rdma_of(group),
            notes=tuple(notes(group, names, found, profile)),
        )


def _machines(hosts: Sequence[Facts], names: Mapping[str, str]) -> Iterator[Machine]:
    """Give each host the first address that it may have and no other has."""
    possible = {host.target: list(dict.fromkeys(_addresses(host))) for host in hosts}
    holders = Counter(address for addresses in possible.values() for address in addresses)
    without = [
        names[target]
        for target, addresses in possible.items()
        if all(holders[address] > 1 for address in addresses)
    ]
    if without:
        raise CouldNotRunError(
            f"no IPv4 address of its own is known of {', '.join(without)}",
            hint="give these hosts addresses, and name each machine once",
        )
    for host in hosts:
        address = next(a for a in possible[host.target] if holders[a] == 1)
        yield Machine(names[host.target], address, host.target, rdma_of([host]))


def _addresses(host: Facts) -> Iterator[str]:
    """List addresses by which others may reach a host, the likeliest first."""
    own = [i for i in host.interfaces if not i.name.startswith(_OWN)]
    held = [address for interface in own for address in interface.addresses if _is_usable(address)]
    for address in (host.target, host.ssh_address):
        # Behind a forwarded port, ssh's address is not the host's.
        if _is_usable(address) and (address in held or not held):
            yield address
    for interface in sorted(own, key=lambda i: i.name != host.default_interface):
        yield from (address for address in interface.addresses if _is_usable(address))


def _is_usable(text: str) -> bool:
    try:
        address = IPv4Address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_link_local or address.is_unspecified)
