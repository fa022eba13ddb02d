"""Node groups: what their nodes have, and how Slurm sees them."""

from typing import Annotated

from pydantic import Field

from hpcsite.site.model.base import FEATURE, CatalogueName, Frozen
from hpcsite.site.model.hardware import Gpus, Hardware, Mig


class NodeGroup(Frozen):
    """Nodes that are alike, by the name of their Ansible group below `slurm_compute`."""

    hardware: Hardware | None = Field(None, description="not set: measured on each node")
    gpus: Gpus | None = Field(None, description="not set: the nodes have none")
    hardware_profile: CatalogueName | None = Field(
        None, description="profile of the hardware catalogue", examples=["dgx-h100"]
    )
    mig: tuple[Mig, ...] = Field((), description="GPUs that are cut into MIG instances")
    shards: int | None = Field(
        None, ge=1, description="GRES shard of each node: shares of GPUs without a limit of memory"
    )
    mps: int | None = Field(
        None, ge=1, description="GRES mps of each node: shares of GPUs by CUDA MPS"
    )
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
