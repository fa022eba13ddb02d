"""The lab: its machines' addresses lie in its network, and ssh can reach them."""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, ip_address
from typing import Any

from hpcsite.errors import Problem
from hpcsite.site.draft import Draft

_LARGEST, _SMALLEST = 16, 28
_QEMU_ONLY = ("cpus", "memory_mib")
# Below are the ports that only root may open.
_PORT_MIN, _PORT_MAX = 1024, 65535
_MEMORY = "site_lab_memory_mib"


def network_has_a_sane_size(draft: Draft) -> Iterator[Problem]:
    """Check that the network is a private one, between /16 and /28."""
    if draft.keys.lab is None or ("site_lab", "network") in draft.invalid:
        return
    network = draft.keys.lab.network
    path = ("site_lab", "network")
    if not network.is_private:
        yield draft.problem(
            f"the lab's network {network} is a public one",
            path,
            "choose a private one, e.g. 10.213.0.0/24",
            code="HPC2001",
        )
    elif not _LARGEST <= network.prefixlen <= _SMALLEST:
        yield draft.problem(
            f"the lab's network {network} is too {_wrong_size(network)}",
            path,
            f"choose a prefix from /{_LARGEST} to /{_SMALLEST}, e.g. 10.213.0.0/24",
            code="HPC2002",
        )


def _wrong_size(network: IPv4Network) -> str:
    return "large" if network.prefixlen < _LARGEST else "small"


def addresses_are_in_the_network(draft: Draft) -> Iterator[Problem]:
    """Every machine's address is a usable one of the lab's network; the first is the bridge's.

    Containers are reached by it, virtual machines reach each other by it.
    """
    if draft.keys.lab is None or ("site_lab", "network") in draft.invalid:
        return
    network = draft.keys.lab.network
    variable = "site_address" if _is_qemu(draft) else "ansible_host"
    taken = {network.network_address, network[1], network.broadcast_address}
    for host, variables in draft.inventory.hosts.items():
        try:
            address = ip_address(str(variables.get(variable)))
        except ValueError:
            continue  # another rule speaks of it, also where it is missing
        if address not in network or address in taken:
            yield draft.problem(
                f"the address of {host}, {address}, is not a machine's in the lab's network "
                f"{network}",
                (variable,),
                f"choose one from {network[2]} to {network[-2]}",
                host,
                code="HPC2003",
            )


def virtual_machines_are_reached_by_ports(draft: Draft) -> Iterator[Problem]:
    """Check that ssh reaches each virtual machine by a port of this computer's loopback."""
    if not _is_qemu(draft):
        return
    for host, variables in draft.inventory.hosts.items():
        place = variables.get("ansible_host")
        if not _is_loopback(place):
            yield draft.problem(
                f"ansible_host of {host} is {place}: virtual machines are reached by ports of "
                "this computer",
                ("ansible_host",),
                "write `ansible_host: 127.0.0.1`; the machine's own address is `site_address`",
                host,
                code="HPC2004",
            )
        port = variables.get("ansible_port")
        if not _is_port(port):
            what = "has no `ansible_port`" if port is None else f"has the ansible_port {port}"
            yield draft.problem(
                f"{host} {what}: virtual machines are reached by ports of this computer",
                ("ansible_port",),
                f"choose one from {_PORT_MIN} to {_PORT_MAX} that nothing else uses, e.g. 22121",
                host,
                code="HPC2005",
            )


def _is_loopback(value: object) -> bool:
    try:
        return IPv4Address(str(value)).is_loopback
    except ValueError:
        return False


def _is_port(value: object) -> bool:
    text = str(value)
    return (
        not isinstance(value, bool)
        and text.isascii()
        and text.isdecimal()
        and _PORT_MIN <= int(text) <= _PORT_MAX
    )


def only_virtual_machines_are_sized(draft: Draft) -> Iterator[Problem]:
    """Check that nobody takes a container for something with CPUs and memory of its own."""
    if draft.keys.lab is None or ("site_lab", "backend") in draft.invalid or _is_qemu(draft):
        return
    given: dict[str, Any] = draft.raw.get("site_lab", {})
    for key in _QEMU_ONLY:
        if key in given:
            yield draft.problem(
                f"`{key}` in site_lab has no meaning for containers",
                ("site_lab", key),
                f"remove {key}, or make virtual machines: `backend: qemu`",
                code="HPC2006",
            )
    for host, variables in draft.inventory.hosts.items():
        if _MEMORY in variables:
            yield draft.problem(
                f"`{_MEMORY}` of {host} has no meaning for containers",
                (_MEMORY,),
                "remove it, or make virtual machines: `backend: qemu` in site_lab",
                host,
                code="HPC2006",
            )


def _is_qemu(draft: Draft) -> bool:
    return draft.keys.lab is not None and draft.keys.lab.backend == "qemu"


RULES = (
    network_has_a_sane_size,
    addresses_are_in_the_network,
    virtual_machines_are_reached_by_ports,
    only_virtual_machines_are_sized,
)
