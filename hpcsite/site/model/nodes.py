"""Node groups: what their nodes have."""

from typing import Annotated

from pydantic import Field

from hpcsite.site.model.base import DEVICE, FEATURE, GRES_TYPE, Frozen


class Hardware(Frozen):
    """What each node of a group has. A node that has less breaks its contract."""

    sockets: int = Field(ge=1, description="CPU sockets")
    cores_per_socket: int = Field(ge=1, description="cores in each socket")
    threads_per_core: int = Field(1, ge=1, description="2 with hyper-threading")
    memory_mib: int = Field(
        ge=256, description="physical memory in MiB; Slurm is told less by a margin"
    )

    @property
    def cpus(self) -> int:
        """Logical CPUs as Slurm counts them."""
        return self.sockets * self.cores_per_socket * self.threads_per_core


class Gpus(Frozen):
    """The GPUs of each node of a group."""

    count: int = Field(ge=1, le=64, description="GPUs in each node")
    type: str | None = Field(None, pattern=GRES_TYPE, description="GRES type, e.g. h100")
    device: str = Field(
        "/dev/nvidia", pattern=DEVICE, description="device file less its number, counted from 0"
    )


class NodeGroup(Frozen):
    """Nodes that are alike, by the name of their Ansible group below `slurm_compute`."""

    hardware: Hardware | None = Field(None, description="not set: measured on each node")
    gpus: Gpus | None = Field(None, description="not set: the nodes have none")
    features: tuple[Annotated[str, Field(pattern=FEATURE)], ...] = Field(
        (), description="what jobs may ask for with --constraint"
    )
    weight: int = Field(1, ge=1, description="nodes of the lowest weight are used first")
    memory_margin_percent: float = Field(
        5.0,
        ge=0,
        lt=50,
        description="kept from RealMemory, so that a node never drains for a few MiB",
    )
    virtual: bool = Field(
        default=False,
        description="schedule by the declaration even where the node has less; labs only",
    )
