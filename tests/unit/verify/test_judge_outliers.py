"""Outliers among few and many: planted ones are found, healthy clusters have none."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsite.verify.judge.outliers import outliers
from hpcsite.verify.results import Direction

HIGHER, LOWER = Direction.HIGHER, Direction.LOWER


def test_slow_node_of_three_is_named() -> None:
    assert outliers({"a": 100.0, "b": 99.0, "c": 70.0}, HIGHER) == ("c",)
    assert outliers({"a": 1.0, "b": 1.01, "c": 1.4}, LOWER) == ("c",)


def test_better_than_the_others_is_no_outlier() -> None:
    assert outliers({"a": 100.0, "b": 99.0, "c": 170.0}, HIGHER) == ()
    assert outliers({"a": 1.0, "b": 1.01, "c": 0.4}, LOWER) == ()


def test_two_values_have_no_peers() -> None:
    assert outliers({"a": 100.0, "b": 1.0}, HIGHER) == ()
    assert outliers({}, HIGHER) == ()


def test_equal_values_have_no_outlier_and_the_floor_holds_with_them() -> None:
    same = dict.fromkeys("abcd", 50.0)
    assert outliers(same, HIGHER) == ()
    assert outliers({**same, "e": 48.0}, HIGHER) == ()
    assert outliers({**same, "e": 47.0}, HIGHER) == ("e",)
    assert outliers({**same, "e": 47.0}, HIGHER, floor=0.1) == ()


def test_wide_spread_is_not_the_fault_of_its_ends() -> None:
    values = {f"n{number}": 100.0 + 10 * number for number in range(9)}
    assert outliers(values, HIGHER) == ()


def test_the_worst_is_named_first() -> None:
    values = {**{f"n{number}": 100.0 + number / 10 for number in range(8)}, "x": 50.0, "y": 10.0}
    assert outliers(values, HIGHER) == ("y", "x")


@pytest.mark.parametrize("count", [3, 4, 5, 8, 16, 64])
def test_healthy_clusters_have_the_stated_rate_and_slow_nodes_are_found(count: int) -> None:
    """At the spread up to which the rate is stated; bench/small_n.py draws more of them."""
    chance = random.Random(f"outliers {count}")  # noqa: S311 - a simulation
    false = missed = 0
    for _ in range(400):
        values = {f"n{number}": chance.gauss(100, 1) for number in range(count)}
        false += bool(outliers(values, HIGHER))
        missed += outliers({**values, "n0": values["n0"] * 0.85}, HIGHER) != ("n0",)
    assert false <= 1
    assert missed <= 4


@given(st.dictionaries(st.text(), st.floats(allow_nan=False, allow_infinity=False)))
def test_whatever_is_measured_has_an_answer(values: dict[str, float]) -> None:
    for direction in Direction:
        assert set(outliers(values, direction)) <= set(values)
