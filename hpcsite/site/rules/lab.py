"""The lab: its machines' addresses lie in its network."""

from collections.abc import Iterator
from ipaddress import IPv4Network, ip_address

from hpcsite.errors import Problem
from hpcsite.site.draft import Draft

_LARGEST, _SMALLEST = 16, 28


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
        )
    elif not _LARGEST <= network.prefixlen <= _SMALLEST:
        yield draft.problem(
            f"the lab's network {network} is too {_wrong_size(network)}",
            path,
            f"choose a prefix from /{_LARGEST} to /{_SMALLEST}, e.g. 10.213.0.0/24",
        )


def _wrong_size(network: IPv4Network) -> str:
    return "large" if network.prefixlen < _LARGEST else "small"


def addresses_are_in_the_network(draft: Draft) -> Iterator[Problem]:
    """Every host's ssh address is a usable one of the lab's network; the first is the bridge's."""
    if draft.keys.lab is None or ("site_lab", "network") in draft.invalid:
        return
    network = draft.keys.lab.network
    taken = {network.network_address, network[1], network.broadcast_address}
    for host, variables in draft.inventory.hosts.items():
        try:
            address = ip_address(str(variables.get("ansible_host")))
        except ValueError:
            continue  # another rule speaks of it
        if address not in network or address in taken:
            yield draft.problem(
                f"the address of {host}, {address}, is not a machine's in the lab's network "
                f"{network}",
                ("ansible_host",),
                f"choose one from {network[2]} to {network[-2]}",
                host,
            )


RULES = (network_has_a_sane_size, addresses_are_in_the_network)
