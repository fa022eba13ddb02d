"""The inventory groups that hpcsite knows: membership turns a feature on."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Feature:
    """A group of the inventory, what its hosts become, and the groups that this needs.

    `hosts` is how many hosts the group may have at most; 0 means any number.
    """

    name: str
    meaning: str
    needs: tuple[str, ...] = ()
    hosts: int = 0


FEATURES = {
    feature.name: feature
    for feature in (
        Feature(
            "slurm_controller",
            "the Slurm controller: slurmctld, and the configuration that all nodes fetch from it",
            needs=("slurm_dbd",),
            hosts=1,
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
        Feature("nfs_server", "NFS servers: they export the paths of site_nfs_exports"),
        Feature(
            "nfs_client",
            "hosts that mount the exports of site_nfs_exports",
            needs=("nfs_server",),
        ),
    )
}

# Names kept for features that this version does not set up yet. A host in one of them would
# silently not get what the name promises, so they are refused.
RESERVED = {
    "alertmanager": "Alertmanager",
    "beegfs_client": "BeeGFS",
    "beegfs_meta": "BeeGFS",
    "beegfs_mgmtd": "BeeGFS",
    "beegfs_storage": "BeeGFS",
    "grafana": "Grafana",
    "ib_subnet_manager": "an InfiniBand subnet manager",
    "lustre_client": "Lustre",
    "lustre_mds": "Lustre",
    "lustre_mgs": "Lustre",
    "lustre_oss": "Lustre",
    "prometheus": "Prometheus",
}
IMPLICIT = ("all", "ungrouped")
