"""Machines of a virtual site."""

from ipaddress import IPv4Network
from typing import Literal

from pydantic import Field

from hpcsite.site.model.base import Frozen


class Lab(Frozen):
    """How `hpcsite lab` makes this inventory's machines. Absent for a real site."""

    backend: Literal["nspawn", "qemu"] = Field(
        "nspawn", description="containers (need root), or virtual machines with their own kernel"
    )
    release: Literal["bookworm", "trixie"] = Field("trixie", description="Debian release")
    network: IPv4Network = Field(
        description="the machines' own network; its first address is this computer's"
    )
    packages: tuple[str, ...] = Field(
        (), description="packages baked into the image besides the base"
    )
    cpus: int = Field(2, ge=1, le=64, description="CPUs of each virtual machine; qemu only")
    memory_mib: int = Field(
        1536, ge=768, description="memory of each virtual machine in MiB; qemu only"
    )
