"""Hosts: names that Slurm and DNS take, and one address each."""

import re
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

from hpcsite.errors import Problem
from hpcsite.site.draft import Draft
from hpcsite.site.names import fold

_LABEL = re.compile(r"(?!\d+$)[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
# Slurm takes these for something else than a node.
_RESERVED = frozenset({"all", "default", "localhost", "none"})
# RFC 5737: for examples, never routed.
_DOCUMENTATION = tuple(
    ip_network(text) for text in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")
)
_LEADING_ZEROS = re.compile(r"(?<!\d)0+(?=\d)")
_Address = IPv4Address | IPv6Address


def is_node_name(name: str) -> bool:
    """Whether a name can be a host's: one label, not all digits, nothing that Slurm reserves."""
    return name.lower() not in _RESERVED and _LABEL.fullmatch(name) is not None


def names_are_valid(draft: Draft) -> Iterator[Problem]:
    """Check that each host has a short host name: it is the NodeName and stands in /etc/hosts."""
    groups = set(draft.inventory.groups)
    for host in draft.inventory.hosts:
        if host.lower() in _RESERVED:
            yield draft.host_problem(
                f"{host} cannot be a host's name: Slurm gives it a meaning of its own",
                host,
                "use the machine's short host name, e.g. gpu01",
                code="HPC1104",
            )
        elif not _LABEL.fullmatch(host):
            code = "HPC1102" if "[" in host else "HPC1101"
            yield draft.host_problem(
                f"{host} is no valid NodeName", host, _name_hint(host), code=code
            )
        elif host in groups:
            yield draft.host_problem(
                f"{host} is the name of a host and of a group",
                host,
                "rename one of them: Ansible could not tell them apart",
                code="HPC1105",
            )


def _name_hint(host: str) -> str:
    if "[" in host:
        return f"Ansible writes a range with a colon, e.g. {host.replace('-', ':')}"
    if "." in host:
        return f"use the short name {host.partition('.')[0]}; the domain goes to site_domain"
    if host.isdigit():
        return f"begin it with a letter, e.g. node{host}"
    return "at most 63 letters, digits and hyphens, no hyphen at either end"


def names_are_distinct(draft: Draft) -> Iterator[Problem]:
    """No two names differ by case only: host names are the same in any case."""
    seen: dict[str, str] = {}
    for host in draft.inventory.hosts:
        first = seen.setdefault(host.lower(), host)
        if first != host:
            yield draft.host_problem(
                f"the names {first} and {host} differ by case only",
                host,
                "host names are the same in upper and lower case: rename one",
                code="HPC1106",
            )


def numbers_are_distinct(draft: Draft) -> Iterator[Problem]:
    """No two names differ by leading zeros only."""
    seen: dict[str, list[str]] = {}
    for host in draft.inventory.hosts:
        plain = _LEADING_ZEROS.sub("", host.lower())
        others = seen.setdefault(plain, [])
        if others and others[0].lower() != host.lower():
            yield draft.host_problem(
                f"the names {others[0]} and {host} differ by leading zeros only",
                host,
                "to Slurm they are two nodes: rename one, or remove it if they are one machine",
                code="HPC1107",
            )
        others.append(host)


def hosts_have_addresses(draft: Draft) -> Iterator[Problem]:
    """Check that every host says by which address the others reach it."""
    hosts = draft.inventory.hosts
    without = [host for host in hosts if _address_variable(hosts[host])[1] is None]
    for where, names in draft.by_line(without):
        yield Problem(
            f"no address: {fold(names)}",
            where,
            "give each host `ansible_host: 10.0.0.21`, or `site_address` if ssh uses another one",
            names[0],
            code="HPC1301",
        )


def addresses_are_valid(draft: Draft) -> Iterator[Problem]:
    """Check that each address is one by which other hosts can reach a host."""
    alone = len(draft.inventory.hosts) == 1
    for host, variables in draft.inventory.hosts.items():
        variable, value = _address_variable(variables)
        address = _parsed(value)
        if value is None:
            continue
        if address is None:
            yield draft.problem(
                f"the address of {host}, {value}, is no IP address",
                (variable,),
                "write an address such as 10.0.0.21; if ansible_host must be a name, "
                "set site_address beside it",
                host,
                code="HPC1302",
            )
        elif isinstance(address, IPv6Address):
            yield draft.problem(
                f"the address of {host}, {address}, is an IPv6 address; only IPv4 is supported",
                (variable,),
                "write the host's IPv4 address; if ssh is to use IPv6, set site_address beside "
                "ansible_host",
                host,
                code="HPC1303",
            )
        elif any(address in network for network in _DOCUMENTATION):
            yield draft.problem(
                f"the address of {host}, {address}, is one of those kept for examples",
                (variable,),
                "write the machine's own address",
                host,
                code="HPC1304",
            )
        elif problem := _unusable(address, alone=alone):
            yield draft.problem(
                f"the address of {host}, {address}, is {problem}",
                (variable,),
                "write the address by which the other hosts reach it",
                host,
                code="HPC1305",
            )


def addresses_are_distinct(draft: Draft) -> Iterator[Problem]:
    """Check that no two hosts have one address."""
    users: dict[_Address, list[str]] = {}
    for host, variables in draft.inventory.hosts.items():
        if address := _parsed(_address_variable(variables)[1]):
            users.setdefault(address, []).append(host)
    for address, hosts in users.items():
        if len(hosts) > 1:
            variable, _ = _address_variable(draft.inventory.hosts[hosts[1]])
            yield draft.problem(
                f"{fold(hosts)} have the same address: {address}",
                (variable,),
                "give each host its own address",
                hosts[1],
                code="HPC1306",
            )


def ssh_destinations_are_distinct(draft: Draft) -> Iterator[Problem]:
    """Two hosts with addresses of their own are not reached by the same ssh destination."""
    seen: dict[tuple[Any, Any], str] = {}
    for host, variables in draft.inventory.hosts.items():
        if "site_address" not in variables or not variables.get("ansible_host"):
            continue
        key = (str(variables["ansible_host"]), str(variables.get("ansible_port", 22)))
        first = seen.setdefault(key, host)
        if first != host:
            yield draft.problem(
                f"{host} and {first} are reached at the same place: {key[0]} port {key[1]}",
                ("ansible_host",),
                "give each host its own ansible_host or ansible_port",
                host,
                code="HPC1307",
            )


def unusable_address(address: IPv4Address) -> str:
    """Say what an address is that no host of a site can have; empty for one that may be."""
    if any(address in network for network in _DOCUMENTATION):
        return "one of those kept for examples"
    return _unusable(address, alone=False) or ""


def cluster_address(variables: dict[str, Any]) -> _Address | None:
    """Address by which others reach the host of these variables; None if it is none."""
    return _parsed(_address_variable(variables)[1])


def _address_variable(variables: dict[str, Any]) -> tuple[str, Any]:
    """Name and value of what gives the address; None if nothing does."""
    if variables.get("site_address") is not None:
        return "site_address", variables["site_address"]
    return "ansible_host", variables.get("ansible_host")


def _parsed(value: object) -> _Address | None:
    try:
        return ip_address(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _unusable(address: _Address, *, alone: bool) -> str | None:
    if address.is_loopback:
        return None if alone else "this computer's own (loopback)"
    if address.is_unspecified or address.is_multicast:
        return "not that of a host"
    return None


RULES = (
    names_are_valid,
    names_are_distinct,
    numbers_are_distinct,
    hosts_have_addresses,
    addresses_are_valid,
    addresses_are_distinct,
    ssh_destinations_are_distinct,
)
