"""Networks, fabrics and switches."""

from ipaddress import IPv4Address, IPv4Network
from typing import Annotated, Literal

from pydantic import Field

from hpcsite.site.model.base import RDMA_DEVICE, CatalogueName, Frozen, Hostlist, Name

Kind = Literal["ethernet", "infiniband", "roce"]


class Network(Frozen):
    """An IP network of the site. A host's address in it is in `site_addresses`."""

    kind: Kind = Field(description="what carries it; infiniband: IP over InfiniBand")
    subnet: IPv4Network = Field(description="its addresses", examples=["10.1.0.0/16"])
    mtu: int | None = Field(
        None, ge=68, le=65535, description="MTU in bytes; not set: as the interface has it"
    )
    gateway: IPv4Address | None = Field(None, description="router, in the subnet")
    vlan: int | None = Field(None, ge=1, le=4094, description="VLAN's number; not set: untagged")
    groups: tuple[str, ...] = Field(
        (), description="groups whose hosts need an address in it", examples=[["slurm_compute"]]
    )
    fabric: Name | None = Field(None, description="fabric of site_fabrics that carries it")


class Fabric(Frozen):
    """A fabric: switches and links of one kind, and the ports that hosts have in it."""

    kind: Kind = Field(description="what its links speak")
    speed_gbit_s: int = Field(ge=1, description="speed of a host's port in Gb/s", examples=[400])
    rails: int = Field(1, ge=1, le=64, description="ports that each host has, one in each rail")
    hcas: tuple[Annotated[str, Field(pattern=RDMA_DEVICE)], ...] = Field(
        (), description="RDMA devices of a host in the order of rails", examples=[["mlx5_0"]]
    )
    subnet_manager: Literal["managed_switch", "host"] | None = Field(
        None,
        description="who runs it, of InfiniBand; host: the hosts of ib_subnet_manager; not set: "
        "these where there are any, else a switch that is managed",
    )


class SwitchLink(Frozen):
    """Nodes that are plugged into a switch."""

    nodes: Hostlist = Field(description="nodes, each by one port", examples=["gpu[001-016]"])
    rail: int | None = Field(
        None, ge=0, description="rail, counted from 0; not set: every rail that no switch names"
    )


class Switch(Frozen):
    """A switch of a fabric."""

    fabric: Name = Field(description="one of site_fabrics")
    profile: CatalogueName | None = Field(
        None, description="switch profile of the hardware catalogue", examples=["qm9700"]
    )
    role: Literal["leaf", "spine", "core"] = Field(
        "leaf", description="leaf: nodes are plugged in; spine: leaves; core: spines"
    )
    managed: bool = Field(
        default=False, description="has a processor of its own that can be a subnet manager"
    )
    links: tuple[SwitchLink, ...] = Field((), description="nodes that are plugged in")
    uplinks: dict[Name, Annotated[int, Field(ge=1)]] = Field(
        {}, description="cables to each switch above, by its name", examples=[{"spine1": 16}]
    )
