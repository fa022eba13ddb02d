"""Shared file systems."""

from typing import Annotated

from pydantic import Field

from hpcsite.site.model.base import MODE, MOUNT_OPTION, SHARED, Frozen, LoginName


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
