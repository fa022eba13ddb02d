"""What `programs/rdma_links.sh` says of a node: RDMA ports as the kernel and programs see them."""

import json
import re
from dataclasses import dataclass, field
from ipaddress import IPv6Address

from hpcsite.site.rdma import Rdma
from hpcsite.verify.parsers import UnreadableError

ACTIVE, LINK_UP = "ACTIVE", "LinkUp"
INFINIBAND, ETHERNET = "InfiniBand", "Ethernet"
_ROCE_V2 = "RoCE v2"
_RATE = re.compile(r"([0-9.]+)\s*Gb/sec")


@dataclass(frozen=True)
class Gid:
    """An address of a port. RoCE v2 is routed by IP; an IPv4 address stands mapped in the GID."""

    index: int
    kind: str
    address: IPv6Address
    interface: str

    def rank(self, interface: str) -> tuple[bool, bool, bool, int]:
        """Order by preference: on the interface, an IPv4 address, not of the link only."""
        return (
            self.interface == interface or not interface,
            self.address.ipv4_mapped is not None,
            not self.address.is_link_local,
            -self.index,
        )


@dataclass(frozen=True)
class Port:
    """A port of an RDMA device."""

    device: str
    number: int
    state: str
    physical: str
    rate_gbit_s: float
    layer: str
    gids: tuple[Gid, ...] = ()

    @property
    def up(self) -> bool:
        """Whether it carries traffic."""
        return self.state == ACTIVE and self.physical == LINK_UP

    @property
    def name(self) -> str:
        """Device and port, as UCX writes them."""
        return f"{self.device}:{self.number}"

    def gid_index(self, interface: str) -> int | None:
        """Index of the GID for RoCE v2; None where there is none. InfiniBand needs none."""
        usable = [
            gid
            for gid in self.gids
            if gid.kind == _ROCE_V2 and (not interface or gid.interface == interface)
        ]
        best = max(usable, key=lambda gid: gid.rank(interface), default=None)
        return best.index if best else None


@dataclass(frozen=True)
class NodeLinks:
    """What one node said. `seen` are devices with an active port that programs can open."""

    ports: tuple[Port, ...] = ()
    memlock: str = ""
    seen: frozenset[str] = field(default=frozenset())
    complaint: str = ""
    asked_verbs: bool = False
    link_states: dict[str, str] = field(default_factory=dict)

    def meant(self, wanted: Rdma) -> tuple[Port, ...]:
        """Ports that the site means: of the devices it names, else all that fit the mode."""
        if wanted.devices:
            return tuple(port for port in self.ports if port.device in wanted.devices)
        if wanted.mode == "infiniband":
            return tuple(port for port in self.ports if port.layer == INFINIBAND)
        return tuple(
            port
            for port in self.ports
            if any(gid.interface == wanted.interface for gid in port.gids)
        )


def read_links(text: str) -> NodeLinks:
    """Read the script's output. Raises `UnreadableError`."""
    head, *sections = re.split(r"^--- (?=rdma$|ibv_devinfo$)", text, flags=re.MULTILINE)
    lines = [line.split("\t") for line in head.splitlines()]
    memlock = next((fields[1] for fields in lines if fields[0] == "memlock"), "")
    if not memlock:
        raise UnreadableError("the node's answer is not whole")
    gids = [fields[1:] for fields in lines if fields[0] == "gid"]
    try:
        ports = tuple(_port(fields[1:], gids) for fields in lines if fields[0] == "port")
    except ValueError as error:
        raise UnreadableError(f"a port cannot be read: {error}") from error
    told = dict(section.split("\n", 1) for section in sections)
    verbs = told.get("ibv_devinfo")
    return NodeLinks(
        ports,
        memlock,
        _seen(verbs or ""),
        _complaint(verbs or ""),
        asked_verbs=verbs is not None,
        link_states=_link_states(told.get("rdma", "")),
    )


def _port(fields: list[str], gids: list[list[str]]) -> Port:
    device, number, state, physical, rate, layer = fields
    found = _RATE.match(rate)
    return Port(
        device,
        int(number),
        state.partition(": ")[2],
        physical.partition(": ")[2],
        float(found[1]) if found else 0.0,
        layer,
        tuple(
            Gid(int(index), kind, IPv6Address(address), interface)
            for of_device, of_port, index, kind, address, interface in gids
            if (of_device, of_port) == (device, number)
        ),
    )


def _seen(text: str) -> frozenset[str]:
    """Devices of `ibv_devinfo` that have an active port."""
    blocks = re.split(r"^hca_id:\s*", text, flags=re.MULTILINE)[1:]
    return frozenset(block.split(None, 1)[0] for block in blocks if "PORT_ACTIVE" in block)


def _complaint(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if re.search(r"[Nn]o |[Ff]ail|[Ee]rror", line)), "")


def _link_states(text: str) -> dict[str, str]:
    """State by device and port, as `rdma -j link` has it; nothing where it cannot be read."""
    try:
        return {f"{one['ifname']}:{one['port']}": str(one["state"]) for one in json.loads(text)}
    except (ValueError, KeyError, TypeError):
        return {}
