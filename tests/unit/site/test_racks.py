"""Geometry and power of racks, without a site."""

import pytest

from hpcsite.site.catalogue import load_catalogue
from hpcsite.site.racks import Device, Running, Supplies, clashes, loads, stacked, weight_kg

CATALOGUE = load_catalogue()
DGX = CATALOGUE.nodes["dgx-h100"]
THREE = {"a": 2, "b": 2, "c": 2}
TWO = {"a": 3, "b": 3}


def dgx(feeds: dict[str, int], names: tuple[str, ...] = ("gpu1",), u: int = 1) -> list[Device]:
    return list(stacked(names, 0, u, dict.fromkeys(names, DGX), feeds))


def test_hosts_stack_upward_by_their_height() -> None:
    devices = dgx(THREE, ("gpu1", "gpu2", "gpu3"), u=2)
    assert [(d.u, d.top) for d in devices] == [(2, 9), (10, 17), (18, 25)]
    # The test vector of the planning facts: 4 of them are 521.8 kg.
    assert weight_kg(dgx(THREE, ("a1", "a2", "a3", "a4"))) == pytest.approx(521.8)


def test_what_is_unknown_takes_one_unit_and_stays_unknown() -> None:
    first, second = stacked(("s1", "s2"), 0, 5, {}, {"a": 1})
    assert (first.top, second.u) == (5, 6)
    assert (first.units, first.weight_kg, first.power_w) == (None, None, None)
    assert first.supplies == Supplies(None, None, None)


def test_a_clash_is_found_below_a_higher_one() -> None:
    tall, short, beside = (
        Device("tall", 0, 1, units=8),
        Device("short", 1, 2, units=1),
        Device("beside", 2, 8, units=2),
    )
    found = [(c.lower.name, c.upper.name) for c in clashes([beside, short, tall])]
    assert found == [("tall", "short"), ("tall", "beside")]
    assert list(clashes([tall, Device("above", 1, 9)])) == []


def test_two_feeds_do_not_carry_a_dgx_h100_through_a_loss_and_three_do() -> None:
    (two,), (three,) = dgx(TWO), dgx(THREE)
    assert two.running(None) is Running.FULL
    assert two.running("a") is Running.REDUCED
    assert {three.running(feed) for feed in (None, "a", "b", "c")} == {Running.FULL}
    (uneven,) = dgx({"a": 4, "b": 2})
    assert uneven.running("a") is Running.OFF
    assert uneven.running("b") is Running.FULL


def test_dgx_a100_is_at_full_power_on_half_of_its_supplies() -> None:
    profile = CATALOGUE.nodes["dgx-a100-80"]
    (device,) = stacked(("gpu1",), 0, 1, {"gpu1": profile}, TWO)
    assert device.running("b") is Running.FULL


def test_supplies_share_the_load_evenly_and_take_over_that_of_a_lost_feed() -> None:
    rows = {load.feed: load for load in loads(dgx(THREE, ("g1", "g2")), THREE)}
    assert rows["a"].normal_w == pytest.approx(2 * 10200 / 3)
    assert rows["a"].lost_w == pytest.approx(2 * 10200 / 2)
    assert rows["a"].lost in ("b", "c")


def test_what_stops_with_a_feed_draws_nothing_from_the_others() -> None:
    (load,) = (row for row in loads(dgx({"a": 4, "b": 2}), "ab") if row.feed == "b")
    assert load.normal_w == pytest.approx(10200 / 3)
    assert load.lost is None
    assert load.lost_w == load.normal_w


@pytest.mark.parametrize(
    ("supplies", "feeds", "spare"),
    [
        (Supplies(6, 4, 3), (("a", 1),), True),
        (Supplies(2, 2), (("a", 2),), False),
        (Supplies(), (("a", 2),), True),
        (Supplies(), (("a", 1),), False),
    ],
)
def test_spare_supplies(
    supplies: Supplies, feeds: tuple[tuple[str, int], ...], *, spare: bool
) -> None:
    assert Device("x", 0, 1, supplies=supplies, feeds=feeds).has_spare_supplies is spare
