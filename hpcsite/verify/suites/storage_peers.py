"""Which node is slower than its peers at the same work, and who is to blame then."""

from collections.abc import Mapping
from statistics import median

from hpcsite.verify.judge.outliers import LEAST, outliers
from hpcsite.verify.results import Certainty, Culprit, CulpritKind, Direction
from hpcsite.verify.suites.storage_patterns import unit_of

# What disks and paths to storage may differ by with nothing wrong. Machines of a lab share a disk,
# so that only what is far apart says anything there.
FLOOR, LAB_FLOOR = 0.25, 0.6
# With two nodes there is no spread to tell what is usual; a node that reaches less than a third of
# what the other does is still slow (a fifth in a lab).
_OF_TWO, _LAB_OF_TWO = 1 / 3, 1 / 5

# Values by name of what was measured, and by node.
Values = Mapping[str, Mapping[str, float]]


def slow_nodes(values: Values, where: str, *, floor: float, sure: bool) -> tuple[Culprit, ...]:
    """Name the nodes that are slower than their peers in something.

    `sure`: nothing but the node itself took part, so that slow in two things is certain, from three
    nodes on.
    """
    seen: dict[str, list[str]] = {}
    for name, of in values.items():
        sure = sure and len(of) >= LEAST
        for node in _slow(of, floor):
            peers = median(value for peer, value in of.items() if peer != node)
            seen.setdefault(node, []).append(
                f"{name} {figure(of[node])} {unit_of(name)}, its peers {figure(peers)}"
            )
    order = sorted(seen, key=lambda node: (-len(seen[node]), node))
    return tuple(
        Culprit(
            kind=CulpritKind.NODE,
            name=node,
            nodes=node,
            certainty=Certainty.CERTAIN if sure and len(seen[node]) > 1 else Certainty.LIKELY,
            because=f"{where}: {'; '.join(seen[node])}",
        )
        for node in order
    )


def _slow(of: Mapping[str, float], floor: float) -> tuple[str, ...]:
    if len(of) != 2:
        return outliers(of, Direction.HIGHER, floor=floor)
    part = _LAB_OF_TWO if floor == LAB_FLOOR else _OF_TWO
    (_, best), (node, least) = sorted(of.items(), key=lambda one: -one[1])
    return (node,) if least < best * part else ()


def figure(value: float) -> str:
    """Write a figure with three digits that tell something."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def too_few(values: Values) -> bool:
    """Whether nothing was measured on two nodes, so that none has a peer."""
    return all(len(of) < 2 for of in values.values())


def faults(culprits: tuple[Culprit, ...]) -> list[str]:
    """Say what is wrong with slow nodes."""
    return [f"{one.name} is slower than its peers on {one.because}" for one in culprits]
