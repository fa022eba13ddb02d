"""File systems: NFS, BeeGFS, Lustre, and scratch on the nodes' own disks."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hpcsite.site.model.base import (
    LUSTRE_NAME,
    MODE,
    MOUNT_OPTION,
    SHARED,
    BlockDevice,
    Frozen,
    HostName,
    LoginName,
    Name,
    SharedPath,
    one_of,
    require_one,
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


class BeegfsStorage(Frozen):
    """Storage targets of a BeeGFS on one host."""

    model_config = one_of("devices", "paths")

    host: HostName = Field(description="host of beegfs_storage")
    devices: tuple[BlockDevice, ...] = Field(
        (), description="a target on each, which is formatted", examples=[["/dev/nvme0n1"]]
    )
    paths: tuple[SharedPath, ...] = Field(
        (), description="in place of devices: folders that exist, a target in each"
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        require_one(self, "devices", "paths")
        return self


class BeegfsMeta(Frozen):
    """The metadata target of a BeeGFS on one host."""

    model_config = one_of("device", "path")

    host: HostName = Field(description="host of beegfs_meta")
    device: BlockDevice | None = Field(None, description="holds the target; it is formatted")
    path: SharedPath | None = Field(None, description="in place of device: a folder that exists")

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        require_one(self, "device", "path")
        return self


class Beegfs(Frozen):
    """A BeeGFS file system; every host of `beegfs_client` mounts it."""

    name: Name = Field(description="the file system's name", examples=["work"])
    mount: SharedPath = Field(description="where every client sees it", examples=["/bulk"])
    mgmtd: HostName | None = Field(
        None, description="host of beegfs_mgmtd; may be left out where there is only one"
    )
    meta: tuple[BeegfsMeta, ...] = Field(min_length=1, description="metadata targets")
    storage: tuple[BeegfsStorage, ...] = Field(min_length=1, description="storage targets")


class LustreTarget(Frozen):
    """A target (MDT or OST) of a Lustre."""

    host: HostName = Field(description="server, of lustre_mds for an MDT, of lustre_oss for an OST")
    device: BlockDevice = Field(
        description="holds the target; it is formatted", examples=["/dev/mapper/ost0"]
    )


class Lustre(Frozen):
    """A Lustre file system; every host of `lustre_client` mounts it."""

    name: str = Field(pattern=LUSTRE_NAME, description="fsname", examples=["scratch"])
    mount: SharedPath = Field(description="where every client sees it", examples=["/scratch"])
    mgs: HostName = Field(description="host of lustre_mgs")
    mdts: tuple[LustreTarget, ...] = Field(min_length=1, description="metadata targets, from MDT0")
    osts: tuple[LustreTarget, ...] = Field(min_length=1, description="storage targets, from OST0")
    options: tuple[Annotated[str, Field(pattern=MOUNT_OPTION)], ...] = Field(
        (), description="further mount options, one each", examples=[["flock"]]
    )


class Scratch(Frozen):
    """A file system on the nodes' own disks, for data that a job may lose."""

    groups: tuple[str, ...] = Field(
        min_length=1, description="groups whose hosts have it", examples=[["gpu"]]
    )
    path: SharedPath = Field(description="where it is mounted", examples=["/local"])
    devices: tuple[BlockDevice, ...] = Field(
        min_length=1, description="disks of each host; they are formatted"
    )
    file_system: Literal["xfs", "ext4"] = Field("xfs", description="what they are formatted with")
    raid: Literal[0, 1] | None = Field(
        None, description="how several disks become one, by md; not set: only where there is one"
    )
