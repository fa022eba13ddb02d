"""The text of slurm.conf, gres.conf and cgroup.conf. Pure; the same input gives the same bytes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address

from hpcsite.site.cgroup_parameters import SINCE, is_yes
from hpcsite.site.model import NodeGroup, Partition, Scalar, SiteKeys
from hpcsite.slurm.conf import expand, fold
from hpcsite.slurm.hardware import Machine, Tracking
from hpcsite.slurm.parameters import written
from hpcsite.slurm.release import release

HEADER = """\
# Managed by hpcsite: the inventory says what stands here, and a deploy writes it again.
"""
# Lists that a site adds to; any other key of site_slurm_parameters replaces the default.
MERGED = frozenset({"accountingstoragetres", "slurmctldparameters", "slurmdparameters"})
SYSTEMD_TIMEOUT_MS = "20000"


@dataclass(frozen=True)
class Paths:
    """Folders that slurm.conf names; distributions differ."""

    state_dir: str
    spool_dir: str


@dataclass(frozen=True)
class Controller:
    """The hosts that slurm.conf names besides the nodes."""

    name: str
    address: str
    database_host: str | None = None


@dataclass(frozen=True)
class Node:
    """A node that has a line in slurm.conf."""

    name: str
    address: str
    group: str
    machine: Machine


def render_slurm_conf(
    keys: SiteKeys,
    controller: Controller,
    paths: Paths,
    nodes: Iterable[Node],
    tracking: Tracking,
) -> str:
    """slurm.conf as a whole."""
    nodes = list(nodes)
    defaults = _defaults(keys, controller, paths, nodes, tracking)
    lines = [f"{key}={value}" for key, value in _merge(defaults, keys.slurm_parameters).items()]
    lines += ["", *_node_lines(nodes, keys.node_groups)]
    lines += ["", *(_partition_line(partition, nodes) for partition in keys.partitions)]
    return HEADER + "\n".join(lines).rstrip("\n") + "\n"


def render_gres_conf(nodes: Iterable[Node], groups: Mapping[str, NodeGroup]) -> str:
    """gres.conf: the device files of each GPU node."""
    shared: dict[tuple[str, str], list[str]] = {}
    for node in nodes:
        gpus = groups[node.group].gpus
        if gres := node.machine.gres:
            device = gpus.device if gpus else "/dev/nvidia"
            files = f"{device}[0-{gres.count - 1}]" if gres.count > 1 else f"{device}0"
            shared.setdefault((gres.type, files), []).append(node.name)
    return HEADER + "".join(
        f"NodeName={fold(names)} Name=gpu{f' Type={kind}' if kind else ''} File={files}\n"
        for (kind, files), names in shared.items()
    )


def render_cgroup_conf(
    tracking: Tracking, version: str = "", parameters: Mapping[str, Scalar | None] | None = None
) -> str:
    """cgroup.conf: constrain jobs by cgroups, or leave them alone altogether.

    Before 23.02 Slurm has no plugin that does nothing, and ends over its name.
    """
    if tracking == "linuxproc":
        return HEADER + ("CgroupPlugin=disabled\n" if release(version) >= (23, 2) else "")
    parameters = parameters or {}
    values = {
        "ConstrainCores": "yes",
        "ConstrainDevices": "yes",
        "ConstrainRAMSpace": "yes",
        # Else a job goes on in swap with what it has not been given. AllowedSwapSpace is 0 %.
        "ConstrainSwapSpace": "yes",
        # How long slurmd waits for its scope, then it ends: 1 s by default, too short for a node
        # whose systemd is busy with a boot.
        "SystemdTimeout": SYSTEMD_TIMEOUT_MS if release(version) >= SINCE["systemdtimeout"] else "",
    }
    memory = {key.lower(): value for key, value in parameters.items()}.get("constrainramspace", 1)
    if not is_yes(memory):
        # With it alone, Slurm would limit the memory all the same (cgroup.conf(5)).
        values["ConstrainSwapSpace"] = ""
    merged = _merge({key: value for key, value in values.items() if value}, parameters)
    return HEADER + "".join(f"{key}={value}\n" for key, value in merged.items())


def _defaults(
    keys: SiteKeys, controller: Controller, paths: Paths, nodes: list[Node], tracking: Tracking
) -> dict[str, str]:
    cgroup = tracking == "cgroup"
    groups = keys.node_groups.values()
    has_gpus = any(group.gpus for group in groups)
    values = {
        "ClusterName": keys.slurm_cluster_name or keys.name,
        "SlurmctldHost": _slurmctld_host(controller),
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
        "GresTypes": "gpu" if has_gpus else "",
        "ProctrackType": "proctrack/cgroup" if cgroup else "proctrack/linuxproc",
        "TaskPlugin": "task/affinity,task/cgroup" if cgroup else "task/affinity",
        "JobAcctGatherType": "jobacct_gather/cgroup" if cgroup else "jobacct_gather/linux",
        "JobAcctGatherFrequency": "30",
        "MpiDefault": "pmix",
        "LaunchParameters": "use_interactive_step",
        # RDMA locks memory. The limit is to be slurmd's, which its unit sets to infinity, and not
        # that of the shell that submits (Slurm's FAQ). It would override PropagateResourceLimits.
        "PropagateResourceLimitsExcept": "" if _propagates(keys) else "MEMLOCK",
    }
    if controller.database_host:
        values["AccountingStorageType"] = "accounting_storage/slurmdbd"
        values["AccountingStorageHost"] = controller.database_host
        values["AccountingStorageTRES"] = "gres/gpu" if has_gpus else ""
    return {key: value for key, value in values.items() if value}


def _propagates(keys: SiteKeys) -> bool:
    """Whether the site itself says which limits a job takes from the shell that submits it."""
    return "propagateresourcelimits" in (key.lower() for key in keys.slurm_parameters)


def _slurmctld_host(controller: Controller) -> str:
    if controller.address in ("", controller.name):
        return controller.name
    return f"{controller.name}({controller.address})"


def _memory_per_cpu(nodes: list[Node]) -> str:
    """Memory of a job that asks for none, so that the CPUs of the smallest node can all be used."""
    shares = [node.machine.real_memory_mib // node.machine.cpus for node in nodes]
    return str(max(1, min(shares))) if shares else ""


def _merge(defaults: dict[str, str], parameters: Mapping[str, Scalar | None]) -> dict[str, str]:
    """Defaults with the site's keys: some lists are added to, null takes a default away."""
    spelling = {key.lower(): key for key in defaults}
    merged = dict(defaults)
    for key, value in parameters.items():
        name = spelling.get(key.lower(), key)
        if value is None:
            merged.pop(name, None)
        elif key.lower() in MERGED and name in merged:
            extra = [item for item in str(value).split(",") if item not in merged[name].split(",")]
            merged[name] = ",".join([merged[name], *extra])
        else:
            merged[name] = written(value)
    return merged


def _node_lines(nodes: list[Node], groups: Mapping[str, NodeGroup]) -> list[str]:
    shared: dict[tuple[str, str, Machine], list[Node]] = {}
    for node in nodes:
        shared.setdefault((node.group, _network(node.address), node.machine), []).append(node)
    return [
        line
        for (group, _, machine), members in shared.items()
        for line in _lines_of(members, machine, groups[group])
    ]


def _network(address: str) -> str:
    """Nodes fold into one line only within a network, so that their addresses fold with them."""
    return address.rpartition(".")[0] if _is_ip(address) else ""


def _is_ip(address: str) -> bool:
    try:
        ip_address(address)
    except ValueError:
        return False
    return "." in address


def _lines_of(members: list[Node], machine: Machine, group: NodeGroup) -> list[str]:
    rest = _machine_fields(machine, group)
    by_name = {node.name: node for node in members}
    names = fold(list(by_name))
    ordered = [by_name[name].address for name in expand(names)]
    if all(address in ("", name) for address, name in zip(ordered, expand(names), strict=True)):
        return [f"NodeName={names} {rest}"]
    # Slurm pairs names and addresses by position, so a folded pair must unfold in the same order.
    addresses = fold(ordered) if all(map(_is_ip, ordered)) else ""
    if addresses and expand(addresses) == ordered:
        return [f"NodeName={names} NodeAddr={addresses} {rest}"]
    return [
        f"NodeName={name} NodeAddr={by_name[name].address or name} {rest}" for name in expand(names)
    ]


def _machine_fields(machine: Machine, group: NodeGroup) -> str:
    fields = [
        f"CPUs={machine.cpus}",
        f"Sockets={machine.sockets}",
        f"CoresPerSocket={machine.cores_per_socket}",
        f"ThreadsPerCore={machine.threads_per_core}",
        f"RealMemory={machine.real_memory_mib}",
    ]
    if machine.gres:
        fields.append(f"Gres={machine.gres}")
    if group.features:
        fields.append(f"Feature={','.join(group.features)}")
    if group.weight != 1:
        fields.append(f"Weight={group.weight}")
    return " ".join(fields)


def _partition_line(partition: Partition, nodes: list[Node]) -> str:
    names = [node.name for node in nodes if node.group in partition.node_groups]
    fields = [f"PartitionName={partition.name}"]
    if names:
        fields.append(f"Nodes={fold(names)}")
    if partition.default:
        fields.append("Default=YES")
    fields.append(f"MaxTime={partition.max_time}")
    if partition.default_time:
        fields.append(f"DefaultTime={partition.default_time}")
    fields.append(f"State={partition.state}")
    fields += [f"{key}={written(value)}" for key, value in partition.parameters.items()]
    return " ".join(fields)
