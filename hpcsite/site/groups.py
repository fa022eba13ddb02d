"""The inventory groups that hpcsite knows: membership turns a feature on."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Feature:
    """A group of the inventory, what its hosts become, and the groups that this needs.

    `hosts` is how many hosts the group may have at most; 0 means any number. `deployed` is False
    for what can be described and is checked, but is not set up by this version.
    """

    name: str
    meaning: str
    needs: tuple[str, ...] = ()
    hosts: int = 0
    deployed: bool = True


_BEEGFS = ("beegfs_mgmtd", "beegfs_meta", "beegfs_storage")
_LUSTRE = ("lustre_mgs", "lustre_mds", "lustre_oss")


def _others(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    return tuple(other for other in names if other != name)


def _part(names: tuple[str, ...], name: str, meaning: str) -> Feature:
    """Make a feature of a file system's servers, none of which is of use without the others."""
    return Feature(name, meaning, needs=_others(names, name), deployed=False)


FEATURES = {
    feature.name: feature
    for feature in (
        Feature(
            "slurm_controller",
            "the Slurm controller: slurmctld, and the configuration that all nodes fetch from it",
            needs=("slurm_dbd",),
            hosts=1,
        ),
        Feature(
            "slurm_backup_controller",
            "controllers that stand by, and take over when slurm_controller fails",
            needs=("slurm_controller",),
            deployed=False,
        ),
        Feature("slurm_dbd", "Slurm's database daemon: accounting", needs=("mariadb",), hosts=1),
        Feature("mariadb", "the database of the accounting", hosts=1),
        Feature(
            "slurm_login",
            "login nodes: Slurm's commands, without a daemon that runs jobs",
            needs=("slurm_controller",),
        ),
        Feature(
            "slurm_compute",
            "compute nodes; each belongs to one node group below this group",
            needs=("slurm_controller",),
        ),
        Feature("rdma", "hosts with an RDMA network: InfiniBand, RoCE or soft-RoCE"),
        Feature(
            "ib_subnet_manager",
            "subnet managers of InfiniBand: opensm; one is master, the others stand by",
            needs=("rdma",),
            deployed=False,
        ),
        Feature("nfs_server", "NFS servers: they export the paths of site_nfs_exports"),
        Feature(
            "nfs_client",
            "hosts that mount the exports of site_nfs_exports",
            needs=("nfs_server",),
        ),
        _part(_BEEGFS, "beegfs_mgmtd", "management of a BeeGFS"),
        _part(_BEEGFS, "beegfs_meta", "metadata servers of BeeGFS"),
        _part(_BEEGFS, "beegfs_storage", "storage servers of BeeGFS"),
        _part(_BEEGFS, "beegfs_client", "hosts that mount what site_beegfs describes"),
        _part(_LUSTRE, "lustre_mgs", "management servers of Lustre (MGS)"),
        _part(_LUSTRE, "lustre_mds", "metadata servers of Lustre: MDTs"),
        _part(_LUSTRE, "lustre_oss", "storage servers of Lustre: OSTs"),
        _part(_LUSTRE, "lustre_client", "hosts that mount what site_lustre describes"),
        Feature("prometheus", "Prometheus: collects and keeps measurements", deployed=False),
        Feature(
            "alertmanager",
            "Alertmanager: tells the receivers of site_monitoring of alerts",
            needs=("prometheus",),
            deployed=False,
        ),
        Feature(
            "grafana",
            "Grafana: dashboards of what Prometheus has",
            needs=("prometheus",),
            deployed=False,
        ),
    )
}

# Keys of the site that are described and checked, but that no role applies yet, and what is left
# as it is on the hosts.
NOT_APPLIED = {
    "networks": "interfaces of further networks",
    "beegfs": "BeeGFS",
    "lustre": "Lustre",
    "scratch": "scratch on the nodes' own disks",
    "software": "versions of the software stack",
    "nccl": "/etc/nccl.conf",
    "monitoring": "monitoring",
}
IMPLICIT = ("all", "ungrouped")
