"""Networks: subnets apart from each other, and what each of them says of itself."""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network

from hpcsite.errors import Problem
from hpcsite.site.draft import Draft
from hpcsite.site.groups import FEATURES
from hpcsite.site.model import Network
from hpcsite.site.names import did_you_mean
from hpcsite.site.sources import KeyPath

# Linux: IPOIB_CM_MTU, 65536 less 16; connected mode, the datagram mode takes less.
IPOIB_MAX_MTU = 65520
# A subnet of /31 or /32 has no addresses of its own.
_LEAST_PREFIX_ALONE = 31
# A subnet, where it stands, and whose it is.
_Subnet = tuple[IPv4Network, KeyPath, str]


def ends_of(subnet: IPv4Network) -> tuple[IPv4Address, ...]:
    """Addresses of a subnet that no host can have: its own and that for broadcasts."""
    if subnet.prefixlen >= _LEAST_PREFIX_ALONE:
        return ()
    return (subnet.network_address, subnet.broadcast_address)


def subnets_are_disjoint(draft: Draft) -> Iterator[Problem]:
    """No address is in two networks. A lab's own network may be described as one of them."""
    subnets: list[_Subnet] = [
        (network.subnet, ("site_networks", name, "subnet"), name)
        for name, network in _networks(draft)
        if network.subnet is not None
    ]
    lab = draft.keys.lab.network if draft.keys.lab else None
    if lab is not None and all(subnet != lab for subnet, _, _ in subnets):
        subnets.append((lab, ("site_lab", "network"), "the lab's network"))
    order = {path: number for number, (_, path, _) in enumerate(subnets)}
    widest: _Subnet | None = None
    for entry in sorted(subnets, key=lambda entry: (entry[0].network_address, entry[0].prefixlen)):
        if widest is not None and entry[0].overlaps(widest[0]):
            first, second = sorted((widest, entry), key=lambda each: order[each[1]])
            yield draft.problem(
                f"{second[0]} of {second[2]} overlaps {first[0]} of {first[2]}",
                second[1],
                "give each network a subnet of its own",
                code="HPC1330",
            )
        if widest is None or entry[0].broadcast_address > widest[0].broadcast_address:
            widest = entry


def gateways_are_reached(draft: Draft) -> Iterator[Problem]:
    """Check that each gateway is an address of a host in its subnet."""
    for name, network in _networks(draft):
        gateway, subnet = network.gateway, network.subnet
        if gateway is None or subnet is None:
            continue
        if gateway not in subnet or gateway in ends_of(subnet):
            what = "is not in" if gateway not in subnet else "is no host's address in"
            yield draft.problem(
                f"the gateway {gateway} of {name} {what} {subnet}",
                ("site_networks", name, "gateway"),
                f"write the router's address in {subnet}, or remove the gateway",
                code="HPC1331",
            )


def groups_are_known(draft: Draft) -> Iterator[Problem]:
    """Check that the groups of each network are groups of the inventory."""
    node_groups = draft.names("node_groups")
    if node_groups is None or not draft.is_whole("custom_groups"):
        return
    mine = draft.keys.custom_groups
    known = {"all", *FEATURES, *draft.inventory.groups, *node_groups, *mine}
    for name, network in _networks(draft):
        path: KeyPath = ("site_networks", name, "groups")
        for number, group in draft.numbered(path, network.groups):
            if group not in known:
                yield draft.problem(
                    f"the network {name} is for an unknown group {group}",
                    (*path, number),
                    did_you_mean(group, known, "correct the name, or remove it"),
                    code="HPC1338",
                )


def fabrics_are_known(draft: Draft) -> Iterator[Problem]:
    """Check that each network's fabric exists, and can carry it."""
    fabrics = draft.names("fabrics")
    for name, network in _networks(draft):
        if network.fabric is None or fabrics is None:
            continue
        if network.fabric not in fabrics:
            yield draft.problem(
                f"the network {name} is on an unknown fabric {network.fabric}",
                ("site_networks", name, "fabric"),
                did_you_mean(network.fabric, fabrics, f"describe {network.fabric} in site_fabrics"),
                code="HPC1339",
            )
            continue
        fabric = draft.keys.fabrics.get(network.fabric)
        kinds = (network.kind, fabric.kind if fabric else None)
        if None not in kinds and kinds.count("infiniband") == 1:
            yield draft.problem(
                f"the network {name} is {kinds[0]}, and its fabric {network.fabric} is {kinds[1]}",
                ("site_networks", name, "kind"),
                "correct the kind of one of them",
                code="HPC1340",
            )


def infiniband_can_carry_it(draft: Draft) -> Iterator[Problem]:
    """Check what IP over InfiniBand cannot do: larger packets, VLANs."""
    for name, network in _networks(draft):
        if network.kind != "infiniband":
            continue
        if network.mtu is not None and network.mtu > IPOIB_MAX_MTU:
            yield draft.problem(
                f"the MTU of {name}, {network.mtu}, is more than IP over InfiniBand carries",
                ("site_networks", name, "mtu"),
                f"at most {IPOIB_MAX_MTU} in connected mode, 4092 in datagram mode",
                code="HPC1341",
            )
        if network.vlan is not None:
            yield draft.problem(
                f"the network {name} is InfiniBand, and has the VLAN {network.vlan}",
                ("site_networks", name, "vlan"),
                "remove vlan: InfiniBand is divided by partitions of the subnet manager",
                code="HPC1344",
            )


def mtus_are_the_same(draft: Draft) -> Iterator[Problem]:
    """Doubt that networks on one fabric have different MTUs."""
    first: dict[str, tuple[str, int]] = {}
    for name, network in _networks(draft):
        if network.fabric is None or network.mtu is None:
            continue
        other, mtu = first.setdefault(network.fabric, (name, network.mtu))
        if mtu != network.mtu:
            yield draft.problem(
                f"the MTU of {name} is {network.mtu}, that of {other} on the same fabric "
                f"{network.fabric} is {mtu}",
                ("site_networks", name, "mtu"),
                "give both the same MTU, or say in site_acknowledged why they differ",
                code="HPC1342",
            )


def _networks(draft: Draft) -> list[tuple[str, Network]]:
    return list(draft.keys.networks.items())


RULES = (
    subnets_are_disjoint,
    gateways_are_reached,
    groups_are_known,
    fabrics_are_known,
    infiniband_can_carry_it,
    mtus_are_the_same,
)
