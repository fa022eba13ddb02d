"""Pairs in rounds, and the node that pairs point to; also for any numbers of nodes."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsite.verify.blame import culprits, told
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


def faults(nodes: list[str], bad: set[str]) -> tuple[dict[Pair, str], list[Pair]]:
    pairs = list(combinations(nodes, 2))
    wrong = {pair: "no traffic" for pair in pairs if bad & set(pair)}
    return wrong, [pair for pair in pairs if pair not in wrong]


@given(st.integers(3, 20), st.data())
def test_one_bad_node_is_named_and_no_other(count: int, data: st.DataObject) -> None:
    nodes = [f"n{number}" for number in range(count)]
    bad = data.draw(st.sampled_from(nodes))
    wrong, good = faults(nodes, {bad})
    expected = {bad: sorted(set(nodes) - {bad})}
    assert culprits(wrong, good) == expected
    (said,) = told(wrong, good)
    assert said.startswith(f"{bad} fails with each of its {count - 1} partners")


def test_a_bad_link_between_good_nodes_blames_neither() -> None:
    _, good = faults(["a", "b", "c"], set())
    wrong = {("a", "b"): "slow"}
    good.remove(("a", "b"))
    assert culprits(wrong, good) == {}
    assert told(wrong, good) == ["between a and b: slow"]


def test_two_bad_nodes_are_both_named() -> None:
    wrong, good = faults(["a", "b", "c", "d"], {"a", "b"})
    assert set(culprits(wrong, good)) == {"a", "b"}


@pytest.mark.parametrize("count", [2, 3])
def test_where_all_fail_no_node_stands_out(count: int) -> None:
    nodes = [f"n{number}" for number in range(count)]
    wrong, good = faults(nodes, set(nodes))
    assert culprits(wrong, good) == {}
    assert len(told(wrong, good)) == len(wrong)
