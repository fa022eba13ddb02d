"""A site: its keys and its hosts."""

from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field

from hpcsite.errors import Location, Problem
from hpcsite.site.catalogue.models import Catalogue
from hpcsite.site.model.base import Frozen
from hpcsite.site.model.host import HostKeys
from hpcsite.site.model.keys import SiteKeys
from hpcsite.site.model.storage import NfsExport


class Host(Frozen):
    """One machine of the inventory."""

    name: str = Field(description="short name; the NodeName of a compute node")
    groups: frozenset[str] = Field(description="every Ansible group that it belongs to")
    address: str = Field(description="cluster address: site_address, else ansible_host")
    vars: dict[str, Any] = Field(description="host variables as ansible-inventory prints them")
    where: Location | None = None

    @property
    def keys(self) -> HostKeys:
        """The host's `site_*` keys, typed; validation holds that they are right."""
        known = HostKeys.model_fields
        return HostKeys(
            **{name: self.vars[f"site_{name}"] for name in known if f"site_{name}" in self.vars}
        )


class Site(Frozen):
    """A whole site, as its inventory describes it. Made by `hpcsite.site.load.load_site`."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    path: Path = Field(description="the inventory folder, absolute")
    keys: SiteKeys
    hosts: dict[str, Host] = Field(description="by name, in inventory order")
    warnings: tuple[Problem, ...] = Field((), description="what is allowed and yet looks wrong")
    catalogue: Catalogue = Field(
        default_factory=Catalogue, description="hardware profiles, the site's own among them"
    )

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
