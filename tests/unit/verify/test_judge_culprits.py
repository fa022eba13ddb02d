"""Whom pairs blame: planted nodes, links and leaves are named, and nobody of a healthy cluster."""

import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsite.verify.judge.culprits import PairValue, culprits, slow_pairs
from hpcsite.verify.results import Certainty, Culprit, CulpritKind, Direction

HIGHER, LOWER = Direction.HIGHER, Direction.LOWER
HEALTHY = 92.0


def names(count: int) -> list[str]:
    return [f"gpu{number:02}" for number in range(1, count + 1)]


def matrix(
    nodes: list[str], slow: dict[frozenset[str], float | None], noise: float = 0.0, seed: int = 1
) -> list[PairValue]:
    chance = random.Random(seed)  # noqa: S311 - a simulation
    return [
        PairValue(pair, slow.get(frozenset(pair), HEALTHY * (1 + chance.gauss(0, noise))))
        for pair in combinations(nodes, 2)
    ]


def with_node(
    nodes: list[str], node: str, value: float | None
) -> dict[frozenset[str], float | None]:
    return {frozenset((node, other)): value for other in nodes if other != node}


def found(values: list[PairValue], **more: object) -> list[tuple[CulpritKind, str, Certainty]]:
    return [
        (each.kind, each.name, each.certainty)
        for each in culprits(values, HIGHER, **more)  # type: ignore[arg-type]
    ]


@pytest.mark.parametrize("value", [9.0, 70.0, None])
@pytest.mark.parametrize("count", [4, 5, 9, 32])
def test_slow_node_is_named_and_nothing_else(count: int, value: float | None) -> None:
    nodes = names(count)
    values = matrix(nodes, with_node(nodes, "gpu03", value), noise=0.02)
    assert found(values) == [(CulpritKind.NODE, "gpu03", Certainty.CERTAIN)]


def test_slow_node_of_three_is_likely_for_it_may_be_two_links() -> None:
    nodes = names(3)
    (culprit,) = culprits(matrix(nodes, with_node(nodes, "gpu02", 9.4)), HIGHER, unit="Gb/s")
    assert culprit == Culprit(
        kind=CulpritKind.NODE,
        name="gpu02",
        nodes="gpu02",
        certainty=Certainty.LIKELY,
        because="2 of 2 pairs with gpu02 reached 9.4 Gb/s, healthy ones 92 Gb/s",
    )


@pytest.mark.parametrize(
    ("count", "sure"), [(3, Certainty.LIKELY), (4, Certainty.CERTAIN), (12, Certainty.CERTAIN)]
)
def test_slow_link_is_named_and_neither_of_its_nodes(count: int, sure: Certainty) -> None:
    values = matrix(names(count), {frozenset(("gpu01", "gpu03")): 9.0}, noise=0.02)
    assert found(values) == [(CulpritKind.LINK, "gpu01 - gpu03", sure)]


def test_one_pair_alone_can_only_point_to_itself() -> None:
    assert found([PairValue(("a", "b"), None)]) == [(CulpritKind.LINK, "a - b", Certainty.POSSIBLE)]
    assert found([PairValue(("a", "b"), 1.0)]) == []


def test_slow_node_and_slow_link_are_told_apart() -> None:
    nodes = names(8)
    slow = with_node(nodes, "gpu05", 20.0) | {frozenset(("gpu01", "gpu02")): None}
    assert found(matrix(nodes, slow, noise=0.01)) == [
        (CulpritKind.NODE, "gpu05", Certainty.CERTAIN),
        (CulpritKind.LINK, "gpu01 - gpu02", Certainty.CERTAIN),
    ]


def test_two_slow_nodes_are_both_named() -> None:
    nodes = names(8)
    slow = with_node(nodes, "gpu02", 20.0) | with_node(nodes, "gpu07", 30.0)
    assert {name for _, name, _ in found(matrix(nodes, slow))} == {"gpu02", "gpu07"}


def test_half_of_the_nodes_may_be_slow() -> None:
    nodes = names(4)
    slow = with_node(nodes, "gpu01", 20.0) | with_node(nodes, "gpu03", 20.0)
    assert {name for _, name, _ in found(matrix(nodes, slow))} == {"gpu01", "gpu03"}


def test_node_that_was_lucky_with_one_partner_is_likely() -> None:
    nodes = names(8)
    slow = with_node(nodes, "gpu04", 20.0)
    slow[frozenset(("gpu04", "gpu08"))] = HEALTHY
    assert found(matrix(nodes, slow)) == [(CulpritKind.NODE, "gpu04", Certainty.LIKELY)]


@pytest.mark.parametrize("count", [3, 4, 5, 6, 8, 16])
def test_where_all_pairs_fail_nobody_stands_out(count: int) -> None:
    """A switch that is off must not condemn whichever node comes first."""
    values = [PairValue(pair, None) for pair in combinations(names(count), 2)]
    assert {kind for kind, _, _ in found(values)} == {CulpritKind.LINK}
    assert {sure for _, _, sure in found(values)} == {Certainty.POSSIBLE}


def leaves(sizes: dict[str, int]) -> dict[str, str]:
    return {f"{leaf}n{place}": leaf for leaf, size in sizes.items() for place in range(size)}


def test_leaf_whose_uplinks_are_slow_is_named() -> None:
    leaf_of = leaves({"a": 4, "b": 4, "c": 4})
    nodes = list(leaf_of)
    slow: dict[frozenset[str], float | None] = {
        frozenset(pair): 40.0
        for pair in combinations(nodes, 2)
        if len({leaf_of[node] for node in pair}) == 2 and "b" in {leaf_of[n] for n in pair}
    }
    (culprit,) = culprits(matrix(nodes, slow, noise=0.02), HIGHER, leaf_of=leaf_of)
    assert (culprit.kind, culprit.name) == (CulpritKind.LEAF, "b")
    assert (culprit.nodes, culprit.certainty) == ("bn[0-3]", Certainty.CERTAIN)


def test_of_two_leaves_the_way_between_them_is_named() -> None:
    leaf_of = leaves({"a": 3, "b": 3})
    nodes = list(leaf_of)
    slow: dict[frozenset[str], float | None] = {
        frozenset(pair): 40.0
        for pair in combinations(nodes, 2)
        if len({leaf_of[node] for node in pair}) == 2
    }
    assert found(matrix(nodes, slow), leaf_of=leaf_of) == [
        (CulpritKind.LEAF, "a - b", Certainty.LIKELY)
    ]


def test_latency_is_worse_where_it_is_higher() -> None:
    nodes = names(4)
    values = [PairValue(pair, 40.0 if "gpu02" in pair else 2.0) for pair in combinations(nodes, 2)]
    (culprit,) = culprits(values, LOWER, unit="us", rail="mlx5_1")
    assert culprit.name == "gpu02"
    assert culprit.because == (
        "3 of 3 pairs with gpu02 reached 40 us, healthy ones 2 us (rail mlx5_1)"
    )


@given(st.integers(2, 24), st.integers(0, 1000))
def test_healthy_cluster_blames_nobody(count: int, seed: int) -> None:
    assert culprits(matrix(names(count), {}, noise=0.01, seed=seed), HIGHER) == ()


@given(
    st.dictionaries(
        st.frozensets(st.sampled_from(names(7)), min_size=2, max_size=2),
        st.none() | st.floats(0, 1e6),
    )
)
def test_every_slow_pair_is_explained_by_somebody(
    measured: dict[frozenset[str], float | None],
) -> None:
    values = [PairValue((min(pair), max(pair)), value) for pair, value in measured.items()]
    for direction in Direction:
        said = culprits(values, direction)
        blamed = [set(each.name.split(" - ")) for each in said]
        for one in slow_pairs(values, direction):
            assert any(each & set(one.pair) for each in blamed)
        assert bool(said) == bool(slow_pairs(values, direction))
