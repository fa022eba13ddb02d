"""Slurm's partitions and QOS."""

from typing import Annotated, Literal

from pydantic import Field

from hpcsite.site.model.base import (
    OVERSUBSCRIBE,
    PARTITION_NAME,
    WORD,
    AccountName,
    Frozen,
    LoginName,
    Name,
    ParameterName,
    Scalar,
    SlurmTime,
    TresMap,
)

PreemptMode = Literal["OFF", "CANCEL", "GANG", "REQUEUE", "SUSPEND", "SUSPEND,GANG"]


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
    qos: Name | None = Field(
        None, description="QOS of site_qos whose limits hold for the whole partition"
    )
    allow_accounts: tuple[AccountName, ...] = Field(
        (), description="accounts whose jobs it takes; empty: all"
    )
    allow_qos: tuple[Name, ...] = Field((), description="QOS whose jobs it takes; empty: all")
    allow_groups: tuple[LoginName, ...] = Field(
        (), description="Unix groups whose members may use it; empty: all"
    )
    priority_tier: int = Field(
        1, ge=0, le=65533, description="jobs of a higher tier come first, and may preempt"
    )
    max_nodes: int | None = Field(None, ge=1, description="nodes of one job; not set: any number")
    oversubscribe: str = Field(
        "NO",
        pattern=OVERSUBSCRIBE,
        description="whether jobs share what they hold",
        examples=["EXCLUSIVE", "FORCE:4"],
    )
    preempt_mode: PreemptMode | None = Field(
        None, description="what happens to a job that is preempted; not set: as the cluster"
    )
    parameters: dict[ParameterName, Scalar] = Field(
        {}, description="further keys of the partition's line"
    )


class Qos(Frozen):
    """A quality of service of Slurm's: priority, limits, and whom it preempts."""

    name: Name = Field(description="the QOS's name", examples=["high"])
    priority: int = Field(0, ge=0, le=2**32 - 2, description="its part in a job's priority")
    max_wall: SlurmTime | None = Field(
        None, description="longest time of a job; not set: no limit", examples=["12:00:00"]
    )
    max_jobs_per_user: int | None = Field(
        None, ge=0, description="jobs of one user that run at a time; not set: any"
    )
    max_submit_per_user: int | None = Field(
        None, ge=0, description="jobs of one user that run or wait; not set: any"
    )
    max_tres_per_user: TresMap = Field(
        {},
        description="what the running jobs of one user may hold, by TRES",
        examples=[{"gres/gpu": 16}],
    )
    max_tres_per_job: TresMap = Field(
        {}, description="what one job may hold, by TRES", examples=[{"node": 4, "mem": "512G"}]
    )
    grp_tres: TresMap = Field({}, description="what all its running jobs may hold, by TRES")
    preempt: tuple[Name, ...] = Field((), description="QOS whose jobs its own may preempt")
    preempt_mode: PreemptMode | None = Field(
        None, description="what happens to its jobs when preempted; not set: as the cluster"
    )
    flags: tuple[Annotated[str, Field(pattern=WORD)], ...] = Field(
        (), description="flags as sacctmgr(1) has them", examples=[["DenyOnLimit"]]
    )
    usage_factor: float = Field(1.0, ge=0, description="what a job's usage is multiplied by")
    usage_threshold: float | None = Field(
        None, ge=0, description="least fairshare with which a job runs; not set: any"
    )
