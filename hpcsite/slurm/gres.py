"""The GRES of a node's line: its GPUs, the MIG instances that they are cut into, and their shares.

Slurm takes a MIG instance for a GPU with a type of its own.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hpcsite.errors import Problem
from hpcsite.site.hardware import gres_of
from hpcsite.site.model import NodeGroup
from hpcsite.slurm.conf import expand

_ENTRY = re.compile(
    r"(?P<name>gpu|shard|mps)(?::(?P<type>[^\d:(][^:(]*|\d+g\.\d+gb))?:(?P<count>\d+)(?:\(.*)?$"
)
_INSTANCE = re.compile(r"\d+g\.\d+gb")
# In the order in which GresTypes has them.
NAMES = ("gpu", "shard", "mps")


@dataclass(frozen=True)
class Gres:
    """One entry of a node's Gres: how many of what."""

    count: int
    type: str = ""
    name: str = "gpu"

    @property
    def is_instance(self) -> bool:
        """Whether it is MIG instances."""
        return self.name == "gpu" and bool(_INSTANCE.fullmatch(self.type))

    def __str__(self) -> str:
        return ":".join(filter(None, (self.name, self.type, str(self.count))))


def parse_gres(text: str) -> tuple[Gres, ...]:
    """Read GPUs and shares of a Gres value such as `gpu:h100:8,shard:64`."""
    found = (_ENTRY.match(entry) for entry in text.split(","))
    return tuple(Gres(int(m["count"]), m["type"] or "", m["name"]) for m in found if m)


@dataclass
class GroupGres:
    """The GRES of the nodes of a group; nodes that no entry of `mig` names have the same."""

    group: NodeGroup
    _named: frozenset[str] = field(init=False)
    _known: dict[str | None, tuple[Gres, ...]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Note which nodes are named."""
        lists = [expand(mig.nodes) for mig in self.group.mig if mig.nodes]
        self._named = frozenset(node for nodes in lists for node in nodes)

    @property
    def kinds(self) -> list[tuple[Gres, ...]]:
        """What there is in the group: of a node that no entry names, and of those named."""
        return [self.of(None), *(self.of(node) for node in sorted(self._named))]

    def of(self, node: str | None) -> tuple[Gres, ...]:
        """Give what stands in a node's line."""
        key = node if node in self._named else None
        if key not in self._known:
            found = gres_of(self.group, key)
            self._known[key] = tuple(Gres(each.count, each.type, each.name) for each in found)
        return self._known[key]


def gres_problems(groups: Mapping[str, NodeGroup]) -> list[Problem]:
    """Find groups whose GRES Slurm would not take."""
    return [
        Problem(
            f"node group {name} has MIG instances beside whole GPUs, which have no type",
            # gres.conf(5) forbids GPUs with and without a type on one node.
            hint=f"give site_node_groups.{name}.gpus a type, e.g. h100",
        )
        for name, group in groups.items()
        if group.mig and any(map(_mixes, GroupGres(group).kinds))
    ]


def gres_types(gres: Iterable[Gres]) -> list[str]:
    """Name each kind of GRES once: what GresTypes says."""
    found = {each.name for each in gres}
    return [name for name in NAMES if name in found]


def _mixes(gres: tuple[Gres, ...]) -> bool:
    types = [each.type for each in gres if each.name == "gpu"]
    return len(types) > 1 and "" in types
