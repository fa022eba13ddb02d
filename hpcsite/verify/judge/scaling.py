"""What more nodes bring: speed-up, efficiency, what is lost, what a model of the network expects.

The model is Hockney's: a message of s bytes takes alpha + s / beta (R. Hockney, The communication
challenge for MPP, Parallel Computing 20, 1994). A ring all-reduce over n nodes sends 2 (n - 1)
messages of s / n bytes one after the other (Thakur, Rabenseifner, Gropp, Optimization of Collective
Communication Operations in MPICH, 2005), so that it takes
2 (n - 1) alpha + 2 (n - 1) / n * s / beta.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

# 1.9 of two nodes is good, 1.2 is waste: the limits lie between, at 1.8 and 1.5.
GOOD, WASTE = 0.9, 0.75
_HOURS_A_DAY = 24


@dataclass(frozen=True)
class Scaling:
    """What so many nodes do together in a second, with the same work for each of them."""

    nodes: int
    value: float


class Grade(StrEnum):
    """Whether the nodes are worth what they cost."""

    GOOD = "good"
    FAIR = "fair"
    WASTE = "waste"


@dataclass(frozen=True)
class Verdict:
    """A number of nodes against the fewest that were measured."""

    nodes: int
    speed_up: float
    efficiency: float
    grade: Grade

    @property
    def lost_node_hours(self) -> float:
        """Node-hours that bring nothing, of each day that all nodes work together."""
        return max(1 - self.efficiency, 0.0) * self.nodes * _HOURS_A_DAY


def verdict(points: Sequence[Scaling]) -> tuple[Verdict, ...]:
    """Judge each number of nodes, in order; the fewest are what the others are held against.

    Raises `ValueError` for values that are not above 0.
    """
    ordered = sorted(points, key=lambda point: point.nodes)
    if any(point.nodes < 1 or not point.value > 0 for point in ordered):
        raise ValueError("scaling is judged from numbers above 0")
    found = []
    for point in ordered:
        speed_up = point.value / ordered[0].value
        efficiency = speed_up * ordered[0].nodes / point.nodes
        grade = Grade.FAIR
        if efficiency >= GOOD:
            grade = Grade.GOOD
        elif efficiency < WASTE:
            grade = Grade.WASTE
        found.append(Verdict(point.nodes, speed_up, efficiency, grade))
    return tuple(found)


def levels(count: int) -> tuple[int, ...]:
    """Numbers of nodes to measure: powers of two, and all."""
    powers = [2**exponent for exponent in range(count.bit_length()) if 2**exponent < count]
    return (*powers, count) if count else ()


@dataclass(frozen=True)
class AlphaBeta:
    """Seconds that each message costs, and bytes a second."""

    alpha_s: float
    beta_bytes_s: float

    def seconds(self, size: float) -> float:
        """Return what a message of so many bytes takes."""
        return self.alpha_s + size / self.beta_bytes_s


def fit_alpha_beta(points: Sequence[tuple[float, float]]) -> AlphaBeta | None:
    """Fit the model to (bytes, seconds), by least squares of the relative errors.

    Relative, since seconds span decades and small messages tell alpha. None where the points do not
    determine it: fewer than two sizes, or times that do not grow with the size.
    """
    known = [(size, seconds) for size, seconds in points if size > 0 and seconds > 0]
    if len({size for size, _ in known}) < 2:
        return None
    # Minimal sum of ((alpha + c s - t) / t)^2, c being 1 / beta.
    one = sum(1 / t**2 for _, t in known)
    s_1 = sum(s / t**2 for s, t in known)
    s_2 = sum(s**2 / t**2 for s, t in known)
    r_0 = sum(1 / t for _, t in known)
    r_1 = sum(s / t for s, t in known)
    determinant = one * s_2 - s_1**2
    if determinant <= 0:
        return None
    alpha, slope = (r_0 * s_2 - r_1 * s_1) / determinant, (one * r_1 - s_1 * r_0) / determinant
    if alpha < 0:
        alpha, slope = 0.0, r_1 / s_2
    return AlphaBeta(alpha, 1 / slope) if slope > 0 else None


def of_all_reduces(points: Sequence[tuple[float, float]], nodes: int) -> AlphaBeta | None:
    """Fit the model of one message to (bytes, seconds) of ring all-reduces over so many nodes."""
    whole = fit_alpha_beta(points)
    if whole is None or nodes < 2:
        return None
    messages = 2 * (nodes - 1)
    return AlphaBeta(whole.alpha_s / messages, whole.beta_bytes_s * messages / nodes)


def ring_all_reduce_s(model: AlphaBeta, nodes: int, size: float) -> float:
    """Return what an all-reduce of so many bytes over so many nodes takes."""
    return 2 * (nodes - 1) * model.seconds(size / nodes)
