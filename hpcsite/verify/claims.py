"""Which checks may run side by side: each claims nodes, more or less for itself."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Mode(Enum):
    """How much of its nodes a check needs."""

    LIGHT = "a job of one CPU that computes nothing: disturbs no measurement"
    BUSY = "measures: no other measurement beside it"
    WHOLE = "needs the nodes empty"


_TOGETHER = {
    frozenset((Mode.LIGHT,)),
    frozenset((Mode.LIGHT, Mode.BUSY)),
}


@dataclass(frozen=True)
class Claim:
    """Nodes and how they are used. Without nodes, nothing is claimed."""

    nodes: frozenset[str] = frozenset()
    mode: Mode = Mode.LIGHT

    def fits(self, others: Iterable["Claim"]) -> bool:
        """Whether it can run beside the others."""
        return all(
            self.nodes.isdisjoint(other.nodes) or frozenset((self.mode, other.mode)) in _TOGETHER
            for other in others
        )
