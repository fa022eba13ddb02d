"""Pairs in rounds, and the node that pairs point to; also for any numbers of nodes."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsite.verify.blame import culprits, told
from hpcsite.verify.results import CulpritKind
from hpcsite.verify.rounds import Pair, rounds_of

NODES = st.integers(0, 40).map(lambda count: [f"gpu{n:02}" for n in range(1, count + 1)])


@given(NODES)
def test_every_pair_meets_once_and_no_node_twice_a_round(nodes: list[str]) -> None:
    rounds = rounds_of(nodes)
    met = [frozenset(pair) for pairs in rounds for pair in pairs]
    assert sorted(map(sorted, met)) == sorted(map(sorted, combinations(nodes, 2)))
    for pairs in rounds:
        members = [node for pair in pairs for node in pair]
        assert len(members) == len(set(members))


@given(NODES)
def test_there_are_as_few_rounds_as_can_be(nodes: list[str]) -> None:
    count = len(nodes)
    assert len(rounds_of(nodes)) == (0 if count < 2 else count - 1 + count % 2)


@pytest.mark.parametrize("count", [255, 256, 511, 512])
def test_large_clusters_have_whole_schedules(count: int) -> None:
    rounds = rounds_of([f"gpu{n:04}" for n in range(count)])
    assert len(rounds) == count - 1 + count % 2
    assert len({frozenset(pair) for pairs in rounds for pair in pairs}) == count * (count - 1) // 2


@given(st.integers(1, 9), st.integers(1, 9))
def test_pairs_below_one_leaf_meet_first(leaves: int, size: int) -> None:
    leaf_of = {f"n{leaf}x{place}": f"leaf{leaf}" for leaf in range(leaves) for place in range(size)}
    nodes = list(leaf_of)
    rounds = rounds_of(nodes, leaf_of)
    count = len(nodes)
    assert len(rounds) == (0 if count < 2 else count - 1 + count % 2)
    met = [frozenset(pair) for pairs in rounds for pair in pairs]
    assert sorted(map(sorted, met)) == sorted(map(sorted, combinations(nodes, 2)))
    for pairs in rounds:
        members = [node for pair in pairs for node in pair]
        assert len(members) == len(set(members))
    crossing = [sum(leaf_of[a] != leaf_of[b] for a, b in pairs) for pairs in rounds]
    if size % 2 == 0 and leaves > 1:
        assert crossing[: size - 1] == [0] * (size - 1)
    assert crossing == sorted(crossing)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=6))
def test_leaves_of_any_sizes_lose_no_pair(sizes: list[int]) -> None:
    leaf_of = {f"n{leaf}x{n}": f"l{leaf}" for leaf, size in enumerate(sizes) for n in range(size)}
    rounds = rounds_of(list(leaf_of), leaf_of)
    met = [frozenset(pair) for pairs in rounds for pair in pairs]
    assert sorted(map(sorted, met)) == sorted(map(sorted, combinations(leaf_of, 2)))
    count = len(leaf_of)
    assert len(rounds) == (0 if count < 2 else count - 1 + count % 2)


def faults(nodes: list[str], bad: set[str]) -> tuple[dict[Pair, str], list[Pair]]:
    pairs = list(combinations(nodes, 2))
    wrong = {pair: "no traffic" for pair in pairs if bad & set(pair)}
    return wrong, [pair for pair in pairs if pair not in wrong]


@given(st.integers(3, 20), st.data())
def test_one_bad_node_is_named_and_no_other(count: int, data: st.DataObject) -> None:
    nodes = [f"n{number}" for number in range(count)]
    bad = data.draw(st.sampled_from(nodes))
    wrong, good = faults(nodes, {bad})
    assert blamed_nodes(wrong, good) == [bad]
    (said,) = told(wrong, culprits(wrong, good))
    assert said.startswith(f"{bad} fails with {count - 1} partners")
    assert said.endswith(": no traffic")


def blamed_nodes(wrong: dict[Pair, str], good: list[Pair]) -> list[str]:
    return [one.name for one in culprits(wrong, good) if one.kind is CulpritKind.NODE]


def test_a_bad_link_between_good_nodes_blames_neither() -> None:
    _, good = faults(["a", "b", "c"], set())
    wrong = {("a", "b"): "slow"}
    good.remove(("a", "b"))
    blamed = culprits(wrong, good)
    assert [(one.kind, one.name) for one in blamed] == [(CulpritKind.LINK, "a - b")]
    assert told(wrong, blamed) == ["between a and b: slow"]


def test_two_bad_nodes_are_both_named() -> None:
    wrong, good = faults(["a", "b", "c", "d"], {"a", "b"})
    assert set(blamed_nodes(wrong, good)) == {"a", "b"}
    assert len(told(wrong, culprits(wrong, good))) == 2


@pytest.mark.parametrize("count", [2, 3, 5, 8])
def test_where_all_fail_no_node_stands_out(count: int) -> None:
    nodes = [f"n{number}" for number in range(count)]
    wrong, good = faults(nodes, set(nodes))
    assert blamed_nodes(wrong, good) == []
    assert len(told(wrong, culprits(wrong, good))) == len(wrong)
