"""Pairs of nodes in rounds: every pair once, and no node twice in a round."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest

Pair = tuple[str, str]


def rounds_of(nodes: Sequence[str], leaf_of: Mapping[str, str] | None = None) -> list[list[Pair]]:
    """Return all pairs in rounds of disjoint ones: N-1 rounds for an even N, else N.

    The circle method: one node stays, the others move on by one place a round. With an odd number
    one node has no partner, another one in each round.

    With `leaf_of`, the leaf switch of each node, rounds with more pairs below one leaf come first:
    a node or a cable that is bad shows there, before any spine is crossed. Where leaves have
    equally many nodes, an even number, the first rounds hold only pairs below one leaf, and the
    others none.
    """
    if not leaf_of:
        return _circle(nodes)
    by_leaf: dict[str, list[str]] = {}
    for node in nodes:
        by_leaf.setdefault(leaf_of.get(node, node), []).append(node)
    groups = list(by_leaf.values())
    size = len(groups[0]) if groups else 0
    if len(groups) > 1 and size % 2 == 0 and all(len(group) == size for group in groups):
        return _local(groups) + _across(groups)

    def crossing(pairs: Sequence[Pair]) -> int:
        return sum(leaf_of.get(a, a) != leaf_of.get(b, b) for a, b in pairs)

    return sorted(_circle([node for group in groups for node in group]), key=crossing)


def _circle(nodes: Sequence[str]) -> list[list[Pair]]:
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


def _local(groups: Sequence[Sequence[str]]) -> list[list[Pair]]:
    """All leaves at once, each with the pairs of its own nodes."""
    parts = zip_longest(*map(_circle, groups), fillvalue=[])
    return [[pair for part in parts_of for pair in part] for parts_of in parts]


def _across(groups: Sequence[Sequence[str]]) -> list[list[Pair]]:
    """Pairs across leaves: leaves meet as nodes do, and their nodes move past each other.

    With an odd number of leaves one would have to wait in each meeting, so halves of leaves meet;
    the meeting of the two halves of each leaf is left out, for those pairs are local.
    """
    parts: list[Sequence[str]] = [*groups]
    meetings = _circle([str(number) for number in range(len(groups))])
    if len(groups) % 2:
        meetings = _circle([str(number) for number in range(2 * len(groups))])
        halves: dict[str, Sequence[str]] = {}
        for (one, other), group in zip(meetings[0], groups, strict=True):
            halves[one], halves[other] = group[: len(group) // 2], group[len(group) // 2 :]
        parts = [halves[str(number)] for number in range(len(halves))]
        meetings = meetings[1:]
    return [
        [
            (node, parts[int(other)][(place + shift) % len(parts[int(other)])])
            for one, other in meeting
            for place, node in enumerate(parts[int(one)])
        ]
        for meeting in meetings
        for shift in range(len(parts[0]))
    ]
