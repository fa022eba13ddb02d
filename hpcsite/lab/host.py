"""What this computer is like: can it hold a lab, and what do its machines inherit."""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv4Network, ip_address
from pathlib import Path

from hpcsite.errors import CouldNotRunError
from hpcsite.image import tools
from hpcsite.lab import names

_RESOLVED = Path("/run/systemd/resolve/resolv.conf")
_RESOLV_CONF = Path("/etc/resolv.conf")
_MTU_MAX = 1500


def require_root() -> None:
    """Check that this is root.

    Raises:
        CouldNotRunError: it is not.
    """
    if os.geteuid() != 0:
        raise CouldNotRunError(
            "the lab makes machines, mounts and a bridge, which needs root",
            hint="run the same command with sudo, or as root",
        )


@dataclass(frozen=True)
class Occupied:
    """A network that the host uses already."""

    network: IPv4Network
    interface: str


def occupied_networks() -> list[Occupied]:
    """Return the host's own networks and routes, the default route left out."""
    addresses = tools.run(["ip", "-json", "-4", "address", "show"])
    routes = tools.run(["ip", "-json", "-4", "route", "show", "table", "all"])
    return parse_occupied(addresses, routes)


def parse_occupied(addresses: str, routes: str) -> list[Occupied]:
    """Read `ip -json address` and `ip -json route`."""
    found = []
    for link in json.loads(addresses or "[]"):
        for entry in link.get("addr_info", []):
            if "local" in entry:
                network = IPv4Interface(f"{entry['local']}/{entry['prefixlen']}").network
                found.append(Occupied(network, link["ifname"]))
    for route in json.loads(routes or "[]"):
        destination = route.get("dst", "default")
        if destination != "default" and route.get("type", "unicast") == "unicast":
            found.append(Occupied(IPv4Network(destination), route.get("dev", "a route")))
    return found


def require_free(network: IPv4Network, bridge: str, occupied: Iterable[Occupied]) -> None:
    """Check that nothing but the lab's own bridge uses the lab's network.

    Raises:
        CouldNotRunError: names the interface or route that does.
    """
    for other in occupied:
        # 0.0.0.0/1 and 128.0.0.0/1 are a VPN's way to write the default route.
        if other.interface == bridge or other.network.prefixlen <= 1:
            continue
        if other.network.overlaps(network):
            what = (
                f"the lab on {other.interface}"
                if other.interface.startswith(names.BRIDGE_PREFIX)
                else other.interface
            )
            raise CouldNotRunError(
                f"site_lab's network {network} collides with {other.network} of {what}",
                hint="choose another private network for `network` in site_lab, and the hosts' "
                "addresses in it",
            )


def uplink_mtu() -> int:
    """Return the MTU of the interface that holds the default route, at most 1500.

    1500 for a host without one.
    """
    routes = json.loads(tools.run(["ip", "-json", "-4", "route", "show", "default"]) or "[]")
    if not routes or "dev" not in routes[0]:
        return _MTU_MAX
    links = json.loads(tools.run(["ip", "-json", "link", "show", "dev", routes[0]["dev"]]))
    return min(_MTU_MAX, int(links[0]["mtu"]))


def resolvers() -> list[str]:
    """Return the name servers that machines can use: the host's, those on its loopback left out."""
    found: list[str] = []
    for path in (_RESOLV_CONF, _RESOLVED):
        try:
            found += parse_resolvers(path.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            continue
    return list(dict.fromkeys(found))


def parse_resolvers(text: str) -> list[str]:
    """Return a resolv.conf's name servers that are no loopback or link-local address."""
    found = []
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 2 and fields[0] == "nameserver":
            try:
                address = ip_address(fields[1].partition("%")[0])
            except ValueError:
                continue
            if not (address.is_loopback or address.is_link_local):
                found.append(str(address))
    return found
