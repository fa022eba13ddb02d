"""Addresses of hosts in the site's networks: right ones, one each, and none forgotten."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from hpcsite.errors import Problem
from hpcsite.site.draft import Draft
from hpcsite.site.model.base import MAC
from hpcsite.site.names import did_you_mean, fold, nearest
from hpcsite.site.rdma import DEFAULT_MODE
from hpcsite.site.rules.hosts import cluster_address
from hpcsite.site.rules.network import ends_of

_ADDRESSES, _MACS = "site_addresses", "site_macs"


@dataclass(frozen=True)
class Entry:
    """What a host says of one network."""

    host: str
    network: str
    value: str


def networks_are_known(draft: Draft) -> Iterator[Problem]:
    """Check that addresses and MACs are those of networks that exist."""
    networks = draft.names("networks")
    if networks is None:
        return
    for key in (_ADDRESSES, _MACS):
        unknown: dict[str, list[str]] = {}
        for entry in _entries(draft, key):
            if entry.network not in networks:
                unknown.setdefault(entry.network, []).append(entry.host)
        for name, hosts in unknown.items():
            yield draft.problem(
                f"{key} of {fold(hosts)} names an unknown network {name}",
                (key, name),
                did_you_mean(name, networks, f"describe {name} in site_networks"),
                hosts[0],
                code="HPC1332",
            )


def addresses_are_in_their_networks(draft: Draft) -> Iterator[Problem]:
    """Check that each address is one of a host in its network's subnet."""
    outside: dict[str, list[Entry]] = {}
    useless: dict[str, list[Entry]] = {}
    for entry, address in _addresses(draft):
        network = draft.keys.networks.get(entry.network)
        if network is None or network.subnet is None:
            continue
        if address not in network.subnet:
            outside.setdefault(entry.network, []).append(entry)
        elif address in ends_of(network.subnet):
            useless.setdefault(entry.network, []).append(entry)
    for name, entries in outside.items():
        subnet = draft.keys.networks[name].subnet
        yield draft.problem(
            f"{_told(entries)} is not in {subnet} of the network {name}",
            (_ADDRESSES, name),
            f"write an address in {subnet}, or correct the subnet",
            entries[0].host,
            code="HPC1333",
        )
    for name, entries in useless.items():
        yield draft.problem(
            f"{_told(entries)} is the subnet's own or broadcast address, in the network {name}",
            (_ADDRESSES, name),
            "give the host another address",
            entries[0].host,
            code="HPC1334",
        )


def addresses_are_distinct(draft: Draft) -> Iterator[Problem]:
    """Check that no address is that of two hosts, or of a compute node and a router."""
    owners: dict[IPv4Address | IPv6Address, str] = {}
    for host, variables in draft.inventory.hosts.items():
        if (address := cluster_address(variables)) is not None:
            owners.setdefault(address, host)
    compute = draft.inventory.groups.get("slurm_compute", frozenset())
    gateways = {each.gateway: name for name, each in draft.keys.networks.items() if each.gateway}
    for entry, address in _addresses(draft):
        owner = owners.setdefault(address, entry.host)
        whose = "" if owner == entry.host else f"that of {owner}"
        if not whose and address in gateways and entry.host in compute:
            whose = f"the gateway of the network {gateways[address]}"
        if whose:
            yield draft.problem(
                f"{address} of {entry.host} in the network {entry.network} is also {whose}",
                (_ADDRESSES, entry.network),
                "give each its own address",
                entry.host,
                code="HPC1335",
            )


def macs_are_those_of_interfaces(draft: Draft) -> Iterator[Problem]:
    """Check that each MAC is one of an interface, and of one host only."""
    owners: dict[str, str] = {}
    for entry in _entries(draft, _MACS):
        mac = entry.value.lower()
        path = (_MACS, entry.network)
        if not re.fullmatch(MAC, mac):
            continue
        if int(mac[:2], 16) % 2 or not mac.strip("0:"):
            yield draft.problem(
                f"the MAC of {entry.host}, {entry.value}, is no interface's",
                path,
                "write what `ip link` on the host shows behind link/ether",
                entry.host,
                code="HPC1345",
            )
            continue
        owner = owners.setdefault(mac, entry.host)
        if owner != entry.host:
            yield draft.problem(
                f"{entry.host} has the same MAC as {owner}: {entry.value}",
                path,
                "write what `ip link` on the host shows behind link/ether",
                entry.host,
                code="HPC1336",
            )


def hosts_have_addresses(draft: Draft) -> Iterator[Problem]:
    """Check that every host of a network's groups has an address there."""
    named = _named(draft)
    # What is no mapping of networks is a mistake of its own, and says nothing of any.
    hosts = draft.inventory.hosts
    unclear = {host for host in hosts if not isinstance(hosts[host].get(_ADDRESSES, {}), dict)}
    for name, network in draft.keys.networks.items():
        needed = _members(draft, network.groups) - named.get(name, set()) - unclear
        without = [
            host
            for host in draft.inventory.hosts
            if host in needed
            and network.subnet is not None
            # An address that is none has a rule of its own.
            and (address := cluster_address(draft.inventory.hosts[host])) is not None
            and address not in network.subnet
        ]
        if without:
            yield draft.problem(
                f"no address in the network {name}: {fold(without)}",
                ("site_networks", name, "groups"),
                f"give each host `site_addresses: {{{name}: …}}`, or take its group out",
                code="HPC1337",
            )


def infiniband_is_there(draft: Draft) -> Iterator[Problem]:
    """Check that hosts in an InfiniBand network have InfiniBand."""
    hosts, rdma = draft.inventory.hosts, draft.inventory.groups.get("rdma", frozenset())
    named = _named(draft)
    for name, network in draft.keys.networks.items():
        if network.kind != "infiniband":
            continue
        mine = _members(draft, network.groups) | named.get(name, set())
        wrong = [
            h for h in hosts if h in mine and (h not in rdma or _mode(hosts[h]) != "infiniband")
        ]
        outside = [host for host in wrong if host not in rdma]
        for found, what in (
            (outside, "not in the group rdma"),
            ([host for host in wrong if host in rdma], "of another rdma_mode"),
        ):
            if found:
                yield draft.problem(
                    f"hosts of the InfiniBand network {name} are {what}: {fold(found)}",
                    ("site_networks", name, "kind"),
                    "put each into rdma with `rdma_mode: infiniband`, or take it out of here",
                    code="HPC1343",
                )


def _mode(variables: dict[str, Any]) -> str:
    mode = str(variables.get("rdma_mode") or DEFAULT_MODE)
    # What a template says is not known here; that it is one is a mistake of its own.
    return "infiniband" if "{" in mode else mode


def _members(draft: Draft, groups: Collection[str]) -> set[str]:
    if "all" in groups:
        return set(draft.inventory.hosts)
    return {host for group in groups for host in draft.inventory.groups.get(group, ())}


def _entries(draft: Draft, key: str) -> Iterator[Entry]:
    for host, variables in draft.inventory.hosts.items():
        given = variables.get(key)
        for network, value in given.items() if isinstance(given, dict) else ():
            if isinstance(value, str):
                yield Entry(host, str(network), value)


def _named(draft: Draft) -> dict[str, set[str]]:
    """List the hosts that have an address in each network, also by a mistyped name of it."""
    networks = draft.names("networks") or []
    meant = cache(lambda name: name if name in networks else nearest(name, networks) or name)
    named: dict[str, set[str]] = {}
    for entry in _entries(draft, _ADDRESSES):
        named.setdefault(meant(entry.network), set()).add(entry.host)
    return named


def _addresses(draft: Draft) -> Iterator[tuple[Entry, IPv4Address]]:
    for entry in _entries(draft, _ADDRESSES):
        try:
            yield entry, IPv4Address(entry.value)
        except ValueError:
            continue


def _told(entries: list[Entry]) -> str:
    if len(entries) == 1:
        return f"the address of {entries[0].host}, {entries[0].value},"
    return f"the address of each of {fold(entry.host for entry in entries)}"


RULES = (
    networks_are_known,
    addresses_are_in_their_networks,
    addresses_are_distinct,
    macs_are_those_of_interfaces,
    hosts_have_addresses,
    infiniband_is_there,
)
