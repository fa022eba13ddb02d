"""Keys of single hosts."""

from ipaddress import IPv4Address
from typing import Annotated

from pydantic import Field

from hpcsite.site.model.base import MAC, Frozen, Name


class HostKeys(Frozen):
    """The `site_*` keys of one host; field `x` is the key `site_x`."""

    # Whether it is an address that others can use is the rules' affair: they hold ansible_host,
    # which stands in for it, to the same.
    address: str | None = Field(
        None,
        description="IPv4 address in the cluster; not set: ansible_host",
        examples=["10.1.0.21"],
    )
    addresses: dict[Name, IPv4Address] = Field(
        {},
        description="addresses in further networks, by their names in site_networks",
        examples=[{"ib": "10.2.0.21"}],
    )
    macs: dict[Name, Annotated[str, Field(pattern=MAC)]] = Field(
        {},
        description="MAC addresses, by network",
        examples=[{"cluster": "0c:42:a1:00:00:01"}],
    )
    subnet_manager_priority: int | None = Field(
        None,
        ge=0,
        le=15,
        description="of a host of ib_subnet_manager: the highest becomes master, the others stand "
        "by",
    )
    lab_gpus: int | None = Field(
        None,
        ge=0,
        le=64,
        description="of a host of a lab: GPU devices that its machine gets; not set: what its node "
        "group declares",
    )
    lab_memory_mib: int | None = Field(
        None,
        ge=768,
        description="of a host of a lab of virtual machines: its memory in MiB; not set: what "
        "site_lab says",
    )
