"""Slurm's partitions."""

from typing import Literal

from pydantic import Field

from hpcsite.site.model.base import PARTITION_NAME, Frozen, ParameterName, Scalar


class Partition(Frozen):
    """A Slurm partition over one or more node groups."""

    name: str = Field(pattern=PARTITION_NAME, description="the partition's name")
    node_groups: tuple[str, ...] = Field(
        min_length=1, description="node groups whose nodes are in the partition"
    )
    default: bool = Field(default=False, description="takes the jobs that name no partition")
    max_time: str = Field("UNLIMITED", description="longest time of a job, e.g. 1-00:00:00")
    default_time: str | None = Field(
        None, description="time of a job that asks for none; not set: max_time"
    )
    state: Literal["UP", "DOWN", "DRAIN", "INACTIVE"] = Field(
        "UP", description="what slurm.conf(5) says of State"
    )
    parameters: dict[ParameterName, Scalar] = Field(
        {}, description="further keys of the partition's line"
    )
