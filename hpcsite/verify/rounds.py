"""Pairs of nodes in rounds: every pair once, and no node twice in a round."""

from collections.abc import Sequence

Pair = tuple[str, str]


def rounds_of(nodes: Sequence[str]) -> list[list[Pair]]:
    """Return all pairs in rounds of disjoint ones: N-1 rounds for an even N, else N.

    The circle method: one node stays, the others move on by one place a round. With an odd number
    one node has no partner, another one in each round.
    """
    ring: list[str | None] = [*nodes]
    if len(ring) % 2:
        ring.append(None)
    if len(nodes) < 2:
        return []
    rounds = []
    for _ in range(len(ring) - 1):
        half = len(ring) // 2
        met = zip(ring[:half], reversed(ring[half:]), strict=True)
        rounds.append([(a, b) for a, b in met if a is not None and b is not None])
        ring[1:] = [ring[-1], *ring[1:-1]]
    return rounds
