"""What nodes are made of: CPUs, memory, GPUs and how these are shared."""

from typing import Annotated

from pydantic import Field

from hpcsite.site.model.base import DEVICE, GRES_TYPE, MIG_PROFILE, NUMBERS, Frozen, Hostlist


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


class Mig(Frozen):
    """How GPUs of a group are cut into MIG instances. Each GPU has at most one entry."""

    nodes: Hostlist | None = Field(
        None, description="nodes of the group; not set: all", examples=["gpu[031-032]"]
    )
    gpus: str | None = Field(
        None,
        pattern=NUMBERS,
        description="GPUs of each of these nodes, counted from 0; not set: all",
        examples=["0-3"],
    )
    profiles: dict[
        Annotated[str, Field(pattern=MIG_PROFILE)], Annotated[int, Field(ge=1, le=64)]
    ] = Field(
        min_length=1,
        description="instances that each GPU is cut into, by profile",
        examples=[{"1g.10gb": 7}],
    )
