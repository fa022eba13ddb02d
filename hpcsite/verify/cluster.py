"""The cluster as a run finds it: Slurm's nodes beside what the site declares of them."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from hpcsite.site.model import NodeGroup, Site
from hpcsite.site.names import fold
from hpcsite.slurm.node_records import SlurmNode
from hpcsite.verify.findings import NotMeasuredError


@dataclass(frozen=True)
class Target:
    """A compute node of the site that can be used, and the partition to reach it by."""

    name: str
    partition: str
    group: str
    gpus: int
    cpus: int


@dataclass(frozen=True)
class Cluster:
    """Compute nodes of a site in inventory order; `targets` are those that take jobs."""

    site: Site
    nodes: dict[str, SlurmNode]
    up_partitions: tuple[str, ...]
    config: dict[str, str]
    partition: str | None = field(default=None)
    # Nodes that do not answer although Slurm gives them jobs, with what is wrong (see `contact`).
    silent: dict[str, str] = field(default_factory=dict)

    @property
    def declared(self) -> tuple[str, ...]:
        """Names of all compute nodes that the inventory has."""
        return tuple(host.name for host in self.site.in_group("slurm_compute"))

    def group_of(self, node: str) -> tuple[str, NodeGroup]:
        """Node group of a compute node; an empty one for a node without."""
        name = self.site.node_group_of(self.site.hosts[node])
        return (name, self.site.keys.node_groups[name]) if name else ("", NodeGroup())

    def unusable(self, node: str) -> str:
        """Why a node takes no job, for a person; empty if it does."""
        why = self._why_not(node)
        return f"{node} is {why}" if why else ""

    def set_aside(self, node: str) -> bool:
        """Whether a node takes no job because people want that, with nothing wrong seen."""
        known = self.nodes.get(node)
        if known is None or node in self.silent or not self._why_not(node):
            return False
        return known.usable or known.set_aside

    def has_room(self, target: Target, memory_mib: int) -> bool:
        """Whether a small job, with a GPU where there are some, needs to wait for nobody."""
        return self.nodes[target.name].has_room(memory_mib)

    def holds(self, node: str, memory_mib: int) -> tuple[int, str]:
        """How many jobs of one CPU and so much memory an empty node holds, and what limits them."""
        known, tracked = self.nodes[node], self.config.get("SelectTypeParameters", "").upper()
        whole = any(word in tracked for word in ("CR_CORE", "CR_SOCKET", "ONE_TASK_PER_CORE"))
        # A job gets whole cores, or sockets, where those are what Slurm hands out.
        each = known.cpus_per_core if whole else 1
        if "CR_SOCKET" in tracked:
            each = known.cpus // max(known.sockets, 1)
        cpus = known.effective_cpus // max(each, 1), f"{known.effective_cpus} CPUs for jobs"
        if "MEMORY" not in tracked:
            return cpus
        return min(cpus, (known.memory_mib // memory_mib, f"{known.memory_mib} MiB of memory"))

    def _why_not(self, node: str) -> str:
        known = self.nodes.get(node)
        if known is None:
            return "not known to Slurm"
        if not known.usable:
            return known.condition
        if node in self.silent:
            return self.silent[node]
        if not self._partition_of(known):
            wanted = f"partition {self.partition}" if self.partition else "any partition that is up"
            return f"not in {wanted}"
        return ""

    @property
    def blocked(self) -> tuple[str, ...]:
        """Why nodes are left out, nodes with the same reason together."""
        return self.reasons(self.declared)

    def reasons(self, nodes: Iterable[str]) -> tuple[str, ...]:
        """Why some nodes take no job, nodes with the same reason together."""
        return tuple(dict.fromkeys(self.reason_of(nodes).values()))

    def reason_of(self, nodes: Iterable[str]) -> dict[str, str]:
        """Return the same by node, for those that take no job."""
        by_reason: dict[str, list[str]] = {}
        for node in nodes:
            if why := self._why_not(node):
                by_reason.setdefault(why, []).append(node)
        said: dict[str, str] = {}
        for why, left_out in by_reason.items():
            are = "is" if len(left_out) == 1 else "are"
            said |= dict.fromkeys(left_out, f"{fold(left_out)} {are} {why}")
        return said

    @property
    def targets(self) -> tuple[Target, ...]:
        """Nodes that take jobs."""
        return tuple(self._target(node) for node in self.declared if not self.unusable(node))

    @property
    def gpu_declared(self) -> tuple[str, ...]:
        """Names of the nodes whose group declares GPUs."""
        return tuple(node for node in self.declared if self.group_of(node)[1].gpus)

    @property
    def gpu_targets(self) -> tuple[Target, ...]:
        """Nodes that take jobs and have GPUs."""
        return tuple(target for target in self.targets if target.gpus)

    def require_any(self) -> None:
        """Raise `NotMeasuredError` with what is wrong if no node takes jobs."""
        if not self.targets:
            raise NotMeasuredError("; ".join(self.blocked))

    def together(self, least: int) -> tuple[Target, ...]:
        """Return the largest set of usable nodes that one job can span: those of one partition.

        Raises `NotMeasuredError` if it is smaller than `least`.
        """
        self.require_any()
        by_partition: dict[str, list[Target]] = {}
        for target in self.targets:
            by_partition.setdefault(target.partition, []).append(target)
        largest = max(by_partition.values(), key=len, default=[])
        if len(largest) < least:
            why = "; ".join(self.blocked) or "no partition holds as many"
            raise NotMeasuredError(f"needs {least} nodes, {len(largest)} can be used: {why}")
        return tuple(largest)

    def _target(self, node: str) -> Target:
        known = self.nodes[node]
        name, group = self.group_of(node)
        gpus = group.gpus.count if group.gpus else 0
        return Target(node, self._partition_of(known), name, gpus, known.cpus)

    def _partition_of(self, node: SlurmNode) -> str:
        up = [name for name in node.partitions if name in self.up_partitions]
        if self.partition:
            return self.partition if self.partition in up else ""
        default = next((p.name for p in self.site.keys.partitions if p.default), None)
        return default if default in up else next(iter(up), "")


def names(targets: tuple[Target, ...]) -> tuple[str, ...]:
    """Names of targets."""
    return tuple(target.name for target in targets)


def folded(targets: tuple[Target, ...]) -> str:
    """Targets as a node set."""
    return fold(target.name for target in targets)
