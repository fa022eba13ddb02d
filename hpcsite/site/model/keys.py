"""All keys of an inventory together."""

from typing import Literal

from pydantic import Field

from hpcsite.site.model.accounts import Group, User
from hpcsite.site.model.base import Frozen, LoginName, Name, ParameterName, Scalar
from hpcsite.site.model.lab import Lab
from hpcsite.site.model.nodes import NodeGroup
from hpcsite.site.model.slurm import Partition
from hpcsite.site.model.storage import NfsExport


class SiteKeys(Frozen):
    """The `site_*` keys of an inventory, validated; field `x` is the key `site_x`."""

    name: Name = Field(description="name of the site")
    domain: str | None = Field(None, description="DNS domain of the hosts")
    timezone: str = Field("Etc/UTC", description="name in the tz database, e.g. Europe/Berlin")
    ntp_servers: tuple[str, ...] = Field(
        (),
        description="a host of the site among them serves time to the others; "
        "empty: the distribution's own pool",
    )
    custom_groups: tuple[str, ...] = Field(
        (), description="groups of your own, without a meaning here"
    )
    verify_user: LoginName | None = Field(
        None, description="one of site_users; runs `hpcsite verify`"
    )
    groups: tuple[Group, ...] = Field((), description="Unix groups")
    users: tuple[User, ...] = Field((), description="users")
    slurm_cluster_name: Name | None = Field(
        None, description="Slurm's ClusterName; not set: site_name"
    )
    slurm_process_tracking: Literal["cgroup", "linuxproc", "auto"] = Field(
        "cgroup", description="auto: cgroup v2 where every measured node can, else linuxproc"
    )
    slurm_parameters: dict[ParameterName, Scalar | None] = Field(
        {}, description="further keys of slurm.conf; null takes a default of hpcsite's away"
    )
    slurm_cgroup_parameters: dict[ParameterName, Scalar | None] = Field(
        {}, description="further keys of cgroup.conf; null takes a default of hpcsite's away"
    )
    node_groups: dict[str, NodeGroup] = Field({}, description="what the nodes of a group have")
    partitions: tuple[Partition, ...] = Field((), description="Slurm's partitions")
    nfs_exports: tuple[NfsExport, ...] = Field((), description="folders shared by NFS")
    lab: Lab | None = Field(None, description="set for a site of virtual machines only")
