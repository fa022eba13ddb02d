import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsite.verify.judge.scaling import (
    AlphaBeta,
    Grade,
    Scaling,
    fit_alpha_beta,
    levels,
    of_all_reduces,
    ring_all_reduce_s,
    verdict,
)

SIZES = (4096.0, 65536.0, 1048576.0, 16777216.0)


@pytest.mark.parametrize(
    ("speed_up", "grade"),
    [(1.9, Grade.GOOD), (1.8, Grade.GOOD), (1.7, Grade.FAIR), (1.49, Grade.WASTE), (1.2, "waste")],
)
def test_what_two_nodes_are_worth(speed_up: float, grade: Grade) -> None:
    one, two = verdict([Scaling(2, 50 * speed_up), Scaling(1, 50)])
    assert (one.speed_up, one.efficiency, one.lost_node_hours) == (1, 1, 0)
    assert two.speed_up == pytest.approx(speed_up)
    assert two.grade == grade


def test_what_is_lost_a_day() -> None:
    *_, eight = verdict([Scaling(1, 10), Scaling(8, 60)])
    assert eight.efficiency == pytest.approx(0.75)
    assert eight.lost_node_hours == pytest.approx(8 * 24 / 4)


def test_more_than_all_loses_nothing() -> None:
    *_, two = verdict([Scaling(1, 10), Scaling(2, 21)])
    assert two.lost_node_hours == 0


@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_values_that_cannot_be_are_not_judged(value: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        verdict([Scaling(1, value), Scaling(2, 1)])


@pytest.mark.parametrize(
    ("count", "expected"),
    [(0, ()), (1, (1,)), (2, (1, 2)), (3, (1, 2, 3)), (8, (1, 2, 4, 8)), (12, (1, 2, 4, 8, 12))],
)
def test_levels(count: int, expected: tuple[int, ...]) -> None:
    assert levels(count) == expected


@given(st.floats(1e-7, 1e-2), st.floats(1e6, 1e12), st.integers(2, 64), st.integers(2, 1024))
def test_the_model_is_found_again(alpha: float, beta: float, fitted: int, asked: int) -> None:
    model = AlphaBeta(alpha, beta)
    points = [(size, ring_all_reduce_s(model, fitted, size)) for size in SIZES]
    found = of_all_reduces(points, fitted)
    assert found is not None
    for size in SIZES:
        expected = ring_all_reduce_s(model, asked, size)
        assert ring_all_reduce_s(found, asked, size) == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize(
    "points", [[], [(1.0, 1.0)], [(1.0, 1.0), (1.0, 2.0)], [(1.0, 2.0), (1e6, 1.0)], [(0.0, 1.0)]]
)
def test_points_that_determine_nothing(points: list[tuple[float, float]]) -> None:
    assert fit_alpha_beta(points) is None


@given(st.lists(st.tuples(st.floats(1, 1e12), st.floats(1e-9, 1e3)), max_size=8))
def test_any_points_give_a_model_that_can_be_or_none(points: list[tuple[float, float]]) -> None:
    model = fit_alpha_beta(points)
    assert model is None or (model.alpha_s >= 0 and model.beta_bytes_s > 0)


def test_one_node_reduces_over_no_network() -> None:
    assert of_all_reduces([(1.0, 1.0), (9.0, 2.0)], 1) is None
    assert ring_all_reduce_s(AlphaBeta(1, 1), 1, 100) == 0
