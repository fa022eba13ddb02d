"""The lab's network on this computer: a bridge, address translation, forwarding."""

import json
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from hpcsite.errors import CouldNotRunError, Problem
from hpcsite.image import files, tools
from hpcsite.lab import host, kernel, names


@dataclass(frozen=True)
class Network:
    """A lab's network."""

    name: str
    network: IPv4Network
    owner: Path  # the lab's folder: two state folders must not share a bridge
    mtu: int

    @property
    def bridge(self) -> str:
        """The bridge's interface name."""
        return names.bridge(self.name)

    @property
    def gateway(self) -> IPv4Address:
        """The host's address on the bridge: the network's first."""
        return self.network[1]


def ruleset(table: str, bridge: str, network: IPv4Network) -> str:
    """Return nft input that makes the lab's table what it must be, whatever was there.

    Only packets that leave the lab are translated; `nft -f` applies all of it or nothing.
    """
    return (
        f"table ip {table}\n"
        f"delete table ip {table}\n"
        f"table ip {table} {{\n"
        "  chain postrouting {\n"
        "    type nat hook postrouting priority srcnat; policy accept;\n"
        f'    ip saddr {network} oifname != "{bridge}" masquerade\n'
        "  }\n"
        "}\n"
    )


def ensure(net: Network) -> None:
    """Make the bridge, the translation and the kernel settings, or mend them.

    Raises:
        CouldNotRunError: the network collides with another, or a tool fails.
    """
    with files.lock("network"):
        require_free(net.name, net.network)
        _ensure_bridge(net)
        table = names.table(net.name)
        tools.run(["nft", "-f", "-"], stdin=ruleset(table, net.bridge, net.network))
        kernel.raise_settings()


def require_free(name: str, network: IPv4Network) -> None:
    """Check that nothing but the lab's own bridge uses its network.

    Raises:
        CouldNotRunError: names the interface or route that does.
    """
    host.require_free(network, names.bridge(name), host.occupied_networks())


def forwarding_problem(name: str) -> Problem | None:
    """Return a warning if this computer's firewall drops forwarded packets by default."""
    chains = tools.attempt(["nft", "-json", "list", "chains"]).stdout
    return parse_forwarding(chains, names.bridge(name))


def parse_forwarding(chains: str, bridge: str) -> Problem | None:
    """Read `nft -json list chains`; a container engine's or a firewall's chain may drop."""
    for entry in json.loads(chains or "{}").get("nftables", []):
        chain = entry.get("chain", {})
        if chain.get("hook") == "forward" and chain.get("policy") == "drop":
            return Problem(
                f"this computer's firewall drops forwarded packets (table {chain['table']}, chain "
                f"{chain['name']}): machines may not reach the internet",
                hint=f"let the lab pass: iptables -I FORWARD -i {bridge} -j ACCEPT; "
                f"iptables -I FORWARD -o {bridge} -j ACCEPT",
            )
    return None


def attach(net: Network, interface: str) -> bool:
    """Connect a machine's link to the bridge; tell whether the link is there.

    Nothing changes for a link that is connected; one whose bridge was removed and made anew is
    connected again.
    """
    done = tools.attempt(["ip", "link", "set", "dev", interface, "master", net.bridge, "up"])
    return done.returncode == 0


def remove(name: str) -> None:
    """Remove a lab's bridge and rules; the kernel settings go back with the last lab."""
    with files.lock("network"):
        tools.attempt(["ip", "link", "delete", "dev", names.bridge(name)])
        tools.attempt(["nft", "delete", "table", "ip", names.table(name)])
        if not _other_labs():
            kernel.restore_settings()


def owner(bridge: str) -> str | None:
    """Return the folder of the lab that a bridge belongs to; None if there is no such bridge."""
    done = tools.attempt(["ip", "-json", "link", "show", "dev", bridge])
    if done.returncode != 0:
        return None
    return str(json.loads(done.stdout)[0].get("ifalias", ""))


def require_own_bridge(name: str, lab: Path) -> None:
    """Check that the lab's bridge is absent or this lab's.

    Raises:
        CouldNotRunError: it belongs to a lab of the same name in another state folder.
    """
    found = owner(names.bridge(name))
    if found not in (None, "", str(lab)):
        raise CouldNotRunError(
            f"a lab named {name} is up already; its machines are in {found}",
            hint="choose another site_name, or take that lab down "
            f"(HPCSITE_STATE_DIR={Path(found or '').parent.parent})",
        )


def _ensure_bridge(net: Network) -> None:
    address = f"{net.gateway}/{net.network.prefixlen}"
    if owner(net.bridge) is None:
        tools.run(["ip", "link", "add", "name", net.bridge, "type", "bridge"])
    tools.run(
        ["ip", "link", "set", "dev", net.bridge, "mtu", str(net.mtu), "alias", str(net.owner)]
    )
    # `[]` or `[{}]` for an interface without an address.
    shown = json.loads(tools.run(["ip", "-json", "-4", "address", "show", "dev", net.bridge]))
    present = {
        f"{info['local']}/{info['prefixlen']}"
        for link in shown
        for info in link.get("addr_info", [])
    }
    if present != {address}:
        tools.run(["ip", "-4", "address", "flush", "dev", net.bridge])
        tools.run(["ip", "address", "add", address, "dev", net.bridge])
    tools.run(["ip", "link", "set", "dev", net.bridge, "up"])


def _other_labs() -> bool:
    listed = tools.attempt(["nft", "list", "tables", "ip"]).stdout
    return any(
        line.split()[-1].startswith(names.TABLE_PREFIX) for line in listed.splitlines() if line
    )
