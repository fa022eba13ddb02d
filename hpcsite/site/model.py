"""The frozen model of a site.

Every `site_*` key of an inventory has its field here, under the same name less the prefix. The
role `site` declares the same keys and defaults for Ansible; a test holds the two equal. Units are
in the names: `memory_mib` is MiB (2^20 bytes).
"""

from ipaddress import IPv4Network
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from hpcsite.errors import Location

NAME = r"^[a-z][a-z0-9_-]*$"
LOGIN_NAME = r"^[a-z_][a-z0-9_-]{0,31}$"
PARTITION_NAME = r"^[A-Za-z][A-Za-z0-9_-]*$"
GRES_TYPE = r"^[a-z][a-z0-9_.-]*$"
DEVICE = r"^/dev/[A-Za-z0-9_/.-]*[A-Za-z_/.-]$"
ABSOLUTE = r"^/[^\s:]*$"
# What exports(5), systemd's unit names and a shell all take as it is: no normal form but this one.
SHARED = r"^(/[A-Za-z0-9_][A-Za-z0-9_.-]*)+$"
MOUNT_OPTION = r"^[A-Za-z0-9_.=:/+-]+$"
MODE = r"^[0-7]{4}$"
COMMENT = r"^[^:\n]*$"
FEATURE = r"^[A-Za-z0-9_.-]+$"
PARAMETER = r"^[A-Za-z][A-Za-z0-9]*$"

# What each pattern asks for, in words.
PATTERNS = {
    NAME: "lower-case letters, digits, - and _, beginning with a letter",
    LOGIN_NAME: "at most 32 lower-case letters, digits, - and _, beginning with a letter or _",
    PARTITION_NAME: "letters, digits, - and _, beginning with a letter",
    GRES_TYPE: "lower-case letters, digits, _, . and -, beginning with a letter",
    DEVICE: "a path below /dev, less the device's number",
    ABSOLUTE: "an absolute path without spaces",
    SHARED: (
        "an absolute path of letters, digits, _, . and -, without a / at its end; no part of it "
        "begins with a dot or a hyphen"
    ),
    MOUNT_OPTION: "one option of nfs(5), without commas and blanks",
    MODE: 'four octal digits in quotes, e.g. "1777"',
    COMMENT: "one line without colons",
    FEATURE: "letters, digits, _, . and -, without spaces",
    PARAMETER: "a key of slurm.conf: letters and digits",
}

Name = Annotated[str, Field(pattern=NAME, max_length=63)]
LoginName = Annotated[str, Field(pattern=LOGIN_NAME)]
# Below 1000 are the distributions' own accounts. What is reserved above is a rule of its own
# (hpcsite.site.rules.accounts).
FixedId = Annotated[int, Field(ge=1000, le=2**31 - 1)]
Scalar = str | int | float | bool
ParameterName = Annotated[str, Field(pattern=PARAMETER)]


class Frozen(BaseModel):
    """Base of every model: immutable, and a key that it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)


class Group(Frozen):
    """A Unix group that exists on every node with the same gid."""

    name: LoginName = Field(description="the group's name")
    gid: FixedId = Field(description="the same on every host; 1000 or more")
    state: Literal["present", "absent"] = Field(
        "present", description="absent: removed from every host"
    )


class User(Frozen):
    """A site user: the same uid on every node."""

    name: LoginName = Field(description="login name")
    uid: FixedId = Field(description="the same on every host; 1000 or more")
    group: LoginName | None = Field(
        None, description="primary group, of site_groups; not set: one of the user's own name"
    )
    groups: tuple[LoginName, ...] = Field((), description="further groups, of site_groups")
    comment: str = Field("", pattern=COMMENT, description="GECOS field, e.g. the real name")
    shell: str = Field("/bin/bash", pattern=ABSOLUTE, description="login shell")
    home: str | None = Field(None, pattern=ABSOLUTE, description="home folder; not set: /home/NAME")
    ssh_keys: tuple[str, ...] = Field(
        (), description="public keys, one line each; set but empty: nobody logs in by key"
    )
    state: Literal["present", "absent"] = Field(
        "present", description="absent: removed from every host; the home folder stays"
    )


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


class NfsExport(Frozen):
    """A folder that an NFS server shares; every host of `nfs_client` mounts it."""

    path: str = Field(pattern=SHARED, description="the folder on the server; made if missing")
    mount: str | None = Field(
        None, pattern=SHARED, description="where every host sees it; not set: the same path"
    )
    server: str | None = Field(
        None, description="host of nfs_server; may be left out where there is only one"
    )
    group: LoginName | None = Field(
        None, description="group of the folder, of site_groups; not set: root"
    )
    mode: str = Field(
        "0755", pattern=MODE, description='mode of the folder, which root owns; "1777": for all'
    )
    read_only: bool = Field(default=False, description="clients may not write")
    root_squash: bool = Field(default=True, description="root of a client is nobody here")
    rdma: bool = Field(default=False, description="mounted over RDMA where client and server do")
    automount: bool = Field(
        default=False, description="mounted at its first use rather than at boot"
    )
    options: tuple[Annotated[str, Field(pattern=MOUNT_OPTION)], ...] = Field(
        (), description="further mount options, one each, as nfs(5) has them"
    )

    @property
    def mount_point(self) -> str:
        """Where every host of the site sees the folder."""
        return self.mount or self.path


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


class Host(Frozen):
    """One machine of the inventory."""

    name: str = Field(description="short name; the NodeName of a compute node")
    groups: frozenset[str] = Field(description="every Ansible group that it belongs to")
    address: str = Field(description="cluster address: site_address, else ansible_host")
    vars: dict[str, Any] = Field(description="host variables as ansible-inventory prints them")
    where: Location | None = None


class Site(Frozen):
    """A whole site, as its inventory describes it. Made by `hpcsite.site.load.load_site`."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    path: Path = Field(description="the inventory folder, absolute")
    keys: SiteKeys
    hosts: dict[str, Host] = Field(description="by name, in inventory order")

    @property
    def name(self) -> str:
        """The site's name."""
        return self.keys.name

    @property
    def cluster_name(self) -> str:
        """Slurm's ClusterName."""
        return self.keys.slurm_cluster_name or self.keys.name

    @property
    def secrets_dir(self) -> Path:
        """The site's own secrets; 0700, never in git."""
        return self.path / "secrets"

    def in_group(self, group: str) -> tuple[Host, ...]:
        """Hosts of an Ansible group, in inventory order; empty for a group that has none."""
        return tuple(host for host in self.hosts.values() if group in host.groups)

    def nfs_server_of(self, export: NfsExport) -> str:
        """Name the host that shares a folder; validation holds that there is exactly one."""
        return export.server or self.in_group("nfs_server")[0].name

    def node_group_of(self, host: Host) -> str | None:
        """Find the node group of a host, or None; validation holds that there is at most one."""
        return next((name for name in self.keys.node_groups if name in host.groups), None)
