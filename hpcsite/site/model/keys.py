"""All keys of an inventory together."""

from typing import Annotated, Literal

from pydantic import Field
from pydantic.config import JsonDict

from hpcsite.site.model.accounts import Account, Association, Group, User
from hpcsite.site.model.acknowledgement import Acknowledgement
from hpcsite.site.model.base import (
    ABSOLUTE,
    NCCL_NAME,
    Frozen,
    LoginName,
    Name,
    ParameterName,
    Scalar,
)
from hpcsite.site.model.lab import Lab
from hpcsite.site.model.monitoring import Monitoring
from hpcsite.site.model.network import Fabric, Network, Switch
from hpcsite.site.model.nodes import NodeGroup
from hpcsite.site.model.racks import Rack
from hpcsite.site.model.slurm import Partition, Qos
from hpcsite.site.model.software import Software
from hpcsite.site.model.storage import Beegfs, Lustre, NfsExport, Scratch

NcclName = Annotated[str, Field(pattern=NCCL_NAME)]
# A mapping without a default of its own in each of its keys reads better in a schema.
_EMPTY: JsonDict = {"default": {}}


class SiteKeys(Frozen):
    """The `site_*` keys of an inventory, validated; field `x` is the key `site_x`."""

    name: Name = Field(description="name of the site", examples=["mysite"])
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
    verify_python: str | None = Field(
        None,
        pattern=ABSOLUTE,
        description="a Python with torch on the compute nodes, for `hpcsite verify training`; "
        "not set: python3",
        examples=["/opt/pytorch/bin/python"],
    )
    groups: tuple[Group, ...] = Field((), description="Unix groups")
    users: tuple[User, ...] = Field((), description="users")
    accounts: tuple[Account, ...] = Field((), description="accounts of Slurm's accounting")
    associations: tuple[Association, ...] = Field(
        (), description="shares and limits of single users in accounts"
    )
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
    slurm_topology: Literal["none", "tree", "block"] | None = Field(
        None, description="none, tree or block; not set: tree where there are switches, else none"
    )
    qos: tuple[Qos, ...] = Field((), description="Slurm's QOS")
    node_groups: dict[str, NodeGroup] = Field({}, description="what the nodes of a group have")
    partitions: tuple[Partition, ...] = Field((), description="Slurm's partitions")
    networks: dict[Name, Network] = Field({}, description="IP networks, by name")
    fabrics: dict[Name, Fabric] = Field({}, description="fabrics, by name")
    switches: dict[Name, Switch] = Field({}, description="switches of the fabrics, by name")
    nfs_exports: tuple[NfsExport, ...] = Field((), description="folders shared by NFS")
    beegfs: tuple[Beegfs, ...] = Field((), description="BeeGFS file systems")
    lustre: tuple[Lustre, ...] = Field((), description="Lustre file systems")
    scratch: tuple[Scratch, ...] = Field((), description="scratch on the nodes' own disks")
    software: Software = Field(
        Software(), description="pins of the software stack", json_schema_extra=_EMPTY
    )
    nccl: dict[NcclName, Scalar] = Field(
        {},
        description="what /etc/nccl.conf says on every node with GPUs",
        examples=[{"NCCL_IB_HCA": "mlx5"}],
    )
    monitoring: Monitoring = Field(
        Monitoring(),
        description="what monitoring keeps, and who is told of alerts",
        json_schema_extra=_EMPTY,
    )
    racks: dict[Name, Rack] = Field({}, description="racks, by name")
    acknowledged: tuple[Acknowledgement, ...] = Field((), description="warnings that are accepted")
    lab: Lab | None = Field(None, description="set for a site of virtual machines only")

    @property
    def topology(self) -> Literal["none", "tree", "block"]:
        """Which topology Slurm is told of."""
        return self.slurm_topology or ("tree" if self.switches else "none")
