"""The text of slurm.conf. Pure; the same input gives the same bytes."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from hpcsite.site.model import SiteKeys
from hpcsite.slurm.cluster import Controller, Node, Paths, Server
from hpcsite.slurm.gres import Gres, GroupGres, gres_types
from hpcsite.slurm.hardware import Tracking
from hpcsite.slurm.preemption import preemption
from hpcsite.slurm.render_nodes import node_lines
from hpcsite.slurm.render_partitions import partition_lines
from hpcsite.slurm.text import HEADER, merge


def render_slurm_conf(
    keys: SiteKeys,
    controller: Controller,
    paths: Paths,
    nodes: Iterable[Node],
    tracking: Tracking,
    *,
    topology: bool = False,
) -> str:
    """slurm.conf as a whole; `topology`: there is a topology.conf beside it."""
    nodes = list(nodes)
    defaults = _defaults(keys, controller, paths, nodes, tracking, topology=topology)
    lines: list[str] = []
    for key, value in merge(defaults, keys.slurm_parameters).items():
        lines.append(f"{key}={value}")
        if key == "SlurmctldHost":
            # A key of several lines: the first is the primary, the others take over in turn.
            lines += [f"{key}={_slurmctld_host(backup)}" for backup in controller.backups]
    lines += ["", *node_lines(nodes, keys.node_groups)]
    lines += ["", *partition_lines(keys, nodes)]
    return HEADER + "\n".join(lines).rstrip("\n") + "\n"


def _defaults(
    keys: SiteKeys,
    controller: Controller,
    paths: Paths,
    nodes: Sequence[Node],
    tracking: Tracking,
    *,
    topology: bool,
) -> dict[str, str]:
    cgroup = tracking == "cgroup"
    groups = keys.node_groups.values()
    gres = [each for group in groups for kind in GroupGres(group).kinds for each in kind]
    values = {
        "ClusterName": keys.slurm_cluster_name or keys.name,
        "SlurmctldHost": _slurmctld_host(controller.servers[0]),
        "SlurmUser": "slurm",
        "AuthType": "auth/munge",
        "StateSaveLocation": paths.state_dir,
        "SlurmdSpoolDir": paths.spool_dir,
        "SlurmctldParameters": "enable_configless",
        "SlurmdParameters": "config_overrides" if any(g.virtual for g in groups) else "",
        # A node that comes back is used again: it registers, and its contract is checked there.
        "ReturnToService": "2",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core_Memory",
        "DefMemPerCPU": _memory_per_cpu(nodes),
        # A job that no partition takes is refused when it is submitted, not left pending for ever.
        "EnforcePartLimits": "ALL",
        "GresTypes": ",".join(gres_types(gres)),
        "ProctrackType": "proctrack/cgroup" if cgroup else "proctrack/linuxproc",
        "TaskPlugin": "task/affinity,task/cgroup" if cgroup else "task/affinity",
        "JobAcctGatherType": "jobacct_gather/cgroup" if cgroup else "jobacct_gather/linux",
        "JobAcctGatherFrequency": "30",
        "MpiDefault": "pmix",
        "LaunchParameters": "use_interactive_step",
        # RDMA locks memory. The limit is to be slurmd's, which its unit sets to infinity, and not
        # that of the shell that submits (Slurm's FAQ). It would override PropagateResourceLimits.
        "PropagateResourceLimitsExcept": "" if _propagates(keys) else "MEMLOCK",
        "TopologyPlugin": f"topology/{keys.topology}" if topology else "",
        **preemption(keys),
    }
    if controller.database_host:
        values["AccountingStorageType"] = "accounting_storage/slurmdbd"
        values["AccountingStorageHost"] = controller.database_host
        values["AccountingStorageTRES"] = ",".join(_tres(keys, gres))
        if keys.accounts or keys.associations or keys.qos:
            # What the site says of accounts and QOS would else be kept, and hold nobody.
            values["AccountingStorageEnforce"] = "associations,limits,qos"
    return {key: value for key, value in values.items() if value}


def _tres(keys: SiteKeys, gres: Sequence[Gres]) -> list[str]:
    """Name what Slurm is to account besides CPUs, memory and nodes, and what limits name.

    MIG instances by type: all of them together say little, as GPUs of several sizes do.
    """
    found = {f"gres/{name}": None for name in gres_types(gres)}
    found |= {f"gres/gpu:{each.type}": None for each in gres if each.is_instance}
    found |= {name: None for name in _limited(keys) if "/" in name}
    return list(found)


def _limited(keys: SiteKeys) -> Iterable[str]:
    limits: list[Mapping[str, object]] = []
    for qos in keys.qos:
        limits += [qos.max_tres_per_user, qos.max_tres_per_job, qos.grp_tres]
    for account in keys.accounts:
        limits += [account.grp_tres, account.max_tres_per_job]
    limits += [association.grp_tres for association in keys.associations]
    return chain.from_iterable(limits)


def _propagates(keys: SiteKeys) -> bool:
    """Whether the site itself says which limits a job takes from the shell that submits it."""
    return "propagateresourcelimits" in (key.lower() for key in keys.slurm_parameters)


def _slurmctld_host(server: Server) -> str:
    if server.address in ("", server.name):
        return server.name
    return f"{server.name}({server.address})"


def _memory_per_cpu(nodes: Sequence[Node]) -> str:
    """Memory of a job that asks for none, so that the CPUs of the smallest node can all be used."""
    shares = [node.machine.real_memory_mib // node.machine.cpus for node in nodes]
    return str(max(1, min(shares))) if shares else ""
