"""From measurements of pairs to whom they blame: a node, a link, or a leaf switch.

A pair alone tells that one of two nodes, or what lies between them, is slow. Over all pairs, a slow
node is slow with everybody, a slow link only with one partner, and a leaf with everybody outside of
it. What explains most of the slow pairs is named first, and what it explains is then set aside.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from hpcsite.site.names import fold
from hpcsite.verify.results import Certainty, Culprit, CulpritKind, Direction
from hpcsite.verify.rounds import Pair

FLOOR = 0.1
# A node that is slow with so many of its partners is slow itself, also if some pairs were lucky.
_MOSTLY = 0.75
_PARTNERS = 4
# The part of the best pairs from which the expected value is taken: with one bad node of three, two
# of three pairs are bad, and with two of four, five of six.
_BEST = 0.1


@dataclass(frozen=True)
class PairValue:
    """What a pair reached; None where it failed, which is worse than any value."""

    pair: Pair
    value: float | None


def expected_value(values: Sequence[PairValue], direction: Direction) -> float | None:
    """Return what a healthy pair reaches, from the better ones; None if no pair has a value."""
    known = sorted(
        (one.value for one in values if one.value is not None),
        reverse=direction is Direction.HIGHER,
    )
    return known[int(_BEST * (len(known) - 1))] if known else None


def slow_pairs(
    values: Sequence[PairValue], direction: Direction, *, floor: float = FLOOR
) -> tuple[PairValue, ...]:
    """Return the pairs that failed, or are worse than a healthy one by more than the floor."""
    healthy = expected_value(values, direction)

    def is_slow(one: PairValue) -> bool:
        if one.value is None or healthy is None:
            return one.value is None
        if direction is Direction.HIGHER:
            return one.value < healthy * (1 - floor)
        return one.value > healthy * (1 + floor)

    return tuple(one for one in values if is_slow(one))


def culprits(
    values: Sequence[PairValue],
    direction: Direction,
    *,
    leaf_of: Mapping[str, str] | None = None,
    rail: str = "",
    unit: str = "",
    floor: float = FLOOR,
) -> tuple[Culprit, ...]:
    """Name whom slow and failed pairs blame, the surest first; nobody where no pair is slow.

    `values` has each pair at most once. `leaf_of` is the leaf switch of each node, where that is
    known of all. `rail` and `unit` are only said.
    """
    slow = {frozenset(one.pair): one for one in slow_pairs(values, direction, floor=floor)}
    if not slow:
        return ()
    every = {frozenset(one.pair): one for one in values}
    sound = frozenset(node for key in every if key not in slow for node in key)
    case = _Case(every, slow, sound, expected_value(values, direction), direction, rail, unit)
    found = list(_nodes(case))
    found += _leaves(case, leaf_of or {})
    found += _nodes(case, mostly=True)
    found += _links(case)
    order = list(Certainty)
    return tuple(sorted(found, key=lambda each: order.index(each.certainty)))


_Key = frozenset[str]


@dataclass
class _Case:
    """All pairs, the slow ones not yet explained, and the nodes that are well with somebody."""

    every: dict[_Key, PairValue]
    slow: dict[_Key, PairValue]
    sound: frozenset[str]
    healthy: float | None
    direction: Direction
    rail: str
    unit: str

    @property
    def nodes(self) -> list[str]:
        return sorted({node for key in self.every for node in key})

    def of(self, node: str, pairs: Iterable[_Key]) -> list[_Key]:
        return [key for key in pairs if node in key]

    def explained(self, keys: Iterable[_Key]) -> None:
        """Set pairs aside: they speak neither for nor against anybody else."""
        for key in list(keys):
            self.every.pop(key, None)
            self.slow.pop(key, None)

    def seen(self, keys: Sequence[_Key], what: str) -> str:
        """Say what the slow pairs reached, and the healthy ones."""
        values = [self.slow[key].value for key in keys]
        failed = sum(value is None for value in values)
        known = sorted(value for value in values if value is not None)
        said = []
        if known:
            ends = known if known[0] != known[-1] else known[:1]
            least, most = f"{ends[0]:.3g}", f"{ends[-1]:.3g}"
            reached = least if least == most else f"{least} to {most}"
            said.append(f"{what} reached {reached} {self.unit}".rstrip())
        if failed:
            said.append(f"{failed} failed" if known else f"{what} failed")
        if known and self.healthy is not None:
            said.append(f"healthy ones {self.healthy:.3g} {self.unit}".rstrip())
        rail = f" (rail {self.rail})" if self.rail else ""
        return ", ".join(said) + rail


def _nodes(case: _Case, *, mostly: bool = False) -> Iterable[Culprit]:
    """Name nodes that are slow with all of their partners, or with most of many."""
    while (node := _worst_node(case, mostly=mostly)) is not None:
        mine, slow = case.of(node, case.every), case.of(node, case.slow)
        # With two partners it may be two links, which is less likely.
        certain = len(mine) > 2 and len(slow) == len(mine)
        yield Culprit(
            kind=CulpritKind.NODE,
            name=node,
            nodes=node,
            certainty=Certainty.CERTAIN if certain else Certainty.LIKELY,
            because=case.seen(slow, f"{len(slow)} of {len(mine)} pairs with {node}"),
        )
        case.explained(mine)


def _worst_node(case: _Case, *, mostly: bool) -> str | None:
    """Return the node with most slow pairs of those that are slow with (nearly) everybody."""
    found: list[tuple[float, int, float, str]] = []
    for node in case.nodes:
        mine, slow = case.of(node, case.every), case.of(node, case.slow)
        share = len(slow) / len(mine) if mine else 0.0
        if len(mine) < 2 or share < (_MOSTLY if mostly else 1.0):
            continue
        if mostly and len(mine) < _PARTNERS:
            continue
        # Where its partners do no better among others, nothing sets it apart: all may be down.
        if not any((key - {node}) <= case.sound for key in mine):
            continue
        # Of equals, the one whose pairs are the slowest: the others are slow only with it.
        found.append((share, len(slow), -_total(case, slow), node))
    return max(found)[3] if found else None


def _total(case: _Case, keys: Sequence[_Key]) -> float:
    values = [case.slow[key].value for key in keys]
    if case.direction is Direction.HIGHER:
        return sum(value or 0.0 for value in values)
    return -sum(float("inf") if value is None else value for value in values)


def _leaves(case: _Case, leaf_of: Mapping[str, str]) -> Iterable[Culprit]:
    """Name leaf switches whose nodes are slow with everybody behind another one."""
    nodes = case.nodes
    if not case.slow or any(node not in leaf_of for node in nodes):
        return
    leaves = sorted({leaf_of[node] for node in nodes})
    across = {
        pair: [key for key in case.every if {leaf_of[node] for node in key} == set(pair)]
        for pair in combinations(leaves, 2)
    }
    bad = {pair for pair, keys in across.items() if keys and all(key in case.slow for key in keys)}
    for leaf in leaves:
        others = [pair for pair, keys in across.items() if leaf in pair and keys]
        if len(others) > 1 and all(pair in bad for pair in others):
            keys = [key for pair in others for key in across[pair]]
            yield _leaf(case, leaf, keys, leaf_of, Certainty.CERTAIN)
            bad -= set(others)
    for pair in sorted(bad):
        keys = [key for key in across[pair] if key in case.slow]
        if len(keys) > 1:
            yield _leaf(case, " - ".join(pair), keys, leaf_of, Certainty.LIKELY)


def _leaf(
    case: _Case, name: str, keys: Sequence[_Key], leaf_of: Mapping[str, str], sure: Certainty
) -> Culprit:
    named = name.split(" - ")
    keys = [key for key in keys if key in case.slow]
    culprit = Culprit(
        kind=CulpritKind.LEAF,
        name=name,
        nodes=fold(node for node in case.nodes if leaf_of[node] in named),
        certainty=sure,
        because=case.seen(keys, f"all {len(keys)} pairs across {name}"),
    )
    case.explained(keys)
    return culprit


def _links(case: _Case) -> Iterable[Culprit]:
    """Name what is left: pairs of which each node is well with others."""
    for key in sorted(case.slow, key=sorted):
        pair = sorted(key)
        others = [
            [each for each in case.of(node, case.every) if each != key and each not in case.slow]
            for node in pair
        ]
        sure = Certainty.CERTAIN if all(len(each) > 1 for each in others) else Certainty.LIKELY
        if not all(others):
            sure = Certainty.POSSIBLE
        yield Culprit(
            kind=CulpritKind.LINK,
            name=" - ".join(pair),
            nodes=fold(pair),
            certainty=sure,
            because=case.seen([key], "this pair"),
        )
