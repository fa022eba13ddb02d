"""What each node of a cluster is for Slurm, and whether it is what the site declares.

Three sources, the first that speaks wins: the node group's declaration (a contract), what the node
says of itself in this run (evidence), and the line that stands in the controller's slurm.conf from
an earlier run. Pure functions; memory is in MiB throughout.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from hpcsite.site.model import Gpus, Hardware, NodeGroup
from hpcsite.slurm.gres import Gres, parse_gres

Tracking = Literal["cgroup", "linuxproc"]

# What task/cgroup and jobacct_gather/cgroup need (cgroup.conf(5)).
NEEDED_CONTROLLERS = frozenset({"cpuset", "cpu", "memory"})
# Keys of a line that count what a node has; Procs is the old name of CPUs.
_COUNTS = (
    "boards",
    "corespersocket",
    "cpus",
    "procs",
    "realmemory",
    "sockets",
    "socketsperboard",
    "threadspercore",
)
# In the message of a node that is not what its group declares; deploy knows it by this.
BREAKS = "breaks its contract"
# A standing RealMemory is kept while it is at most this part below what could be configured.
KEPT_WITHIN = 0.10


@dataclass(frozen=True)
class Evidence:
    """What a node says of itself in this run; made by the module `slurmd_evidence`."""

    cpus: int = 0
    sockets: int = 0
    cores_per_socket: int = 0
    threads_per_core: int = 0
    memory_mib: int = 0
    gpu_devices: tuple[str, ...] = ()
    cgroup_controllers: frozenset[str] = frozenset()
    problem: str = ""

    @classmethod
    def from_result(cls, result: Mapping[str, Any]) -> "Evidence":
        """Evidence of the module's result; a failed result is a node that could not be measured."""
        evidence = result.get("evidence")
        if not isinstance(evidence, Mapping):
            return cls(problem=str(result.get("msg", "")).strip() or "no reason given")
        return cls(
            cpus=int(evidence["cpus"]),
            sockets=int(evidence["sockets"]),
            cores_per_socket=int(evidence["cores_per_socket"]),
            threads_per_core=int(evidence["threads_per_core"]),
            memory_mib=int(evidence["memory_mib"]),
            gpu_devices=tuple(evidence["gpu_devices"]),
            cgroup_controllers=frozenset(evidence["cgroup_controllers"]),
        )

    @property
    def can_cgroup(self) -> bool:
        """Whether the node's kernel gives Slurm the cgroup controllers that it needs."""
        return not self.problem and self.cgroup_controllers >= NEEDED_CONTROLLERS


@dataclass(frozen=True)
class Machine:
    """The hardware part of a NodeName line. Equal machines share a line."""

    cpus: int
    sockets: int
    cores_per_socket: int
    threads_per_core: int
    real_memory_mib: int
    gres: tuple[Gres, ...] = ()

    @classmethod
    def of_line(cls, line: Mapping[str, str]) -> "Machine | None":
        """Read the hardware of a line; None where it does not tell enough.

        What is left out is inferred as slurmctld infers it (slurm.conf(5), CPUs and Sockets), but
        for the memory and for all of the CPUs: for these it would take 1.
        """
        try:
            given = {key: int(line[key]) for key in _COUNTS if key in line}
        except ValueError:
            return None
        if "realmemory" not in given or given.keys() <= {"realmemory"} or not all(given.values()):
            return None
        cores, threads = given.get("corespersocket", 1), given.get("threadspercore", 1)
        cpus = given.get("cpus", given.get("procs", 0))
        sockets = given.get("sockets", given.get("boards", 1) * given.get("socketsperboard", 0))
        sockets = sockets or max(1, cpus // (cores * threads))
        return cls(
            cpus or sockets * cores * threads,
            sockets,
            cores,
            threads,
            given["realmemory"],
            parse_gres(line.get("gres", "")),
        )


@dataclass(frozen=True)
class Candidate:
    """A compute node of the inventory. `evidence` is None when it did not take part in the run."""

    name: str
    address: str
    group: str
    evidence: Evidence | None = None


def configured_memory(memory_mib: int, margin_percent: float) -> int:
    """RealMemory for so much memory: less the margin, rounded down."""
    return int(memory_mib * (100 - margin_percent) / 100)


def contract_problem(node: Candidate, group: NodeGroup, tracking: Tracking) -> str:
    """Why a measured node is not what its group declares; empty when it is, or was not measured."""
    evidence = node.evidence
    if evidence is None:
        return ""
    if evidence.problem:
        return f"{node.name} could not be measured: {evidence.problem}"
    faults = [*_gpu_faults(evidence, group.gpus)]
    if group.hardware and not group.virtual:
        faults += _hardware_faults(evidence, group.hardware, group.memory_margin_percent)
    broken = [f"group {node.group} declares {fault}" for fault in faults]
    if tracking == "cgroup" and not evidence.can_cgroup:
        missing = ", ".join(sorted(NEEDED_CONTROLLERS - evidence.cgroup_controllers))
        broken.append(
            f"its kernel gives no cgroup controllers {missing}, which Slurm needs: boot it with "
            "cgroup v2, or set site_slurm_process_tracking to auto or linuxproc"
        )
    return f"{node.name} {BREAKS}: {'; '.join(broken)}" if broken else ""


def _hardware_faults(evidence: Evidence, declared: Hardware, margin_percent: float) -> list[str]:
    faults = []
    measured_cores = evidence.sockets * evidence.cores_per_socket
    cores = declared.sockets * declared.cores_per_socket
    if evidence.sockets < declared.sockets:
        faults.append(f"{declared.sockets} sockets, slurmd -C measures {evidence.sockets}")
    if measured_cores < cores:
        faults.append(f"{cores} cores, slurmd -C measures {measured_cores}")
    if evidence.cpus < declared.cpus:
        faults.append(f"{declared.cpus} CPUs, slurmd -C measures {evidence.cpus}")
    if evidence.memory_mib < configured_memory(declared.memory_mib, margin_percent):
        faults.append(
            f"{declared.memory_mib} MiB of memory, slurmd -C measures {evidence.memory_mib} MiB"
        )
    return faults


def _gpu_faults(evidence: Evidence, gpus: Gpus | None) -> list[str]:
    if gpus is None or len(evidence.gpu_devices) == gpus.count:
        return []
    plural = "" if gpus.count == 1 else "s"
    return [f"{gpus.count} GPU{plural}, {gpus.device}* has {len(evidence.gpu_devices)}"]


def machine_of(
    node: Candidate, group: NodeGroup, standing: Machine | None, gres: tuple[Gres, ...]
) -> Machine | None:
    """Choose the hardware of a node that keeps its contract; None where nobody knows it.

    `gres` is what its group declares of GPUs and their shares.
    """
    margin = group.memory_margin_percent
    if declared := group.hardware:
        return Machine(
            declared.cpus,
            declared.sockets,
            declared.cores_per_socket,
            declared.threads_per_core,
            configured_memory(declared.memory_mib, margin),
            gres,
        )
    if node.evidence and not node.evidence.problem:
        return _measured_machine(node.evidence, margin, standing, gres)
    if standing:
        return Machine(
            standing.cpus,
            standing.sockets,
            standing.cores_per_socket,
            standing.threads_per_core,
            standing.real_memory_mib,
            gres,
        )
    return None


def _measured_machine(
    evidence: Evidence, margin: float, standing: Machine | None, gres: tuple[Gres, ...]
) -> Machine:
    memory = configured_memory(evidence.memory_mib, margin)
    # A kernel reports a few MiB more or less after each boot. Rounding lets equal nodes share a
    # line; a standing value that still holds stays, so that a second run changes nothing.
    step = 1 << max(0, memory.bit_length() - 8)
    rounded = memory - memory % step
    if standing and memory * (1 - KEPT_WITHIN) <= standing.real_memory_mib <= memory:
        rounded = standing.real_memory_mib
    return Machine(
        evidence.cpus,
        evidence.sockets,
        evidence.cores_per_socket,
        evidence.threads_per_core,
        rounded,
        gres,
    )
