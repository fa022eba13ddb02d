import pytest

from hpcsite.verify.findings import NotMeasuredError, Tally
from hpcsite.verify.suites.clocks import (
    CLOCKS,
    Offset,
    clock_culprits,
    judge,
    offset,
    read_exchanges,
)
from tests.unit.verify.fakeslurm import FakeSlurm, Runner


def spread_answer(gpu02: float, round_trip: float = 0.002) -> dict[str, str]:
    lines = {"gpu01": 0.0, "gpu02": gpu02}
    return {
        "coproc": "".join(
            f"@ {node} 0\n> 100.0 {100 + off + round_trip / 2} {100 + round_trip}\n"
            for node, off in lines.items()
        )
    }


@pytest.mark.parametrize("off", [0.8, -0.8, 3600.0])
def test_a_clock_that_is_off_is_named(run_check: Runner, off: float) -> None:
    result = run_check(CLOCKS, FakeSlurm(answers=spread_answer(off)))  # type: ignore[arg-type]
    assert result.status == "FAIL"
    assert f"gpu02 is off by {off:+.3f} s" in result.reason
    (measured,) = result.measurements
    assert measured.value == pytest.approx(abs(off), abs=0.01)
    assert measured.meets is False
    (culprit,) = result.culprits
    assert (culprit.name, culprit.certainty) == ("gpu02", "certain")
    assert "chronyc tracking" in result.remedy


def test_a_small_difference_passes_and_is_reported(run_check: Runner) -> None:
    result = run_check(CLOCKS, FakeSlurm(answers=spread_answer(0.3)))  # type: ignore[arg-type]
    assert result.status == "PASS"
    (measured,) = result.measurements
    assert measured.value == pytest.approx(0.3)
    assert (measured.unit, measured.meets) == ("s", True)


def test_a_round_trip_too_long_to_tell_is_an_error(run_check: Runner) -> None:
    slurm = FakeSlurm(answers=spread_answer(0.4, 1.0))  # type: ignore[arg-type]
    result = run_check(CLOCKS, slurm)
    assert result.status == "ERROR"
    assert "can be wrong by" in result.reason


def test_a_node_that_does_not_tell_its_time_is_an_error(run_check: Runner) -> None:
    text = "@ gpu01 0\n> 1.0 1.0 1.0\n@ gpu02 0\n> date: bad option\n"
    result = run_check(CLOCKS, FakeSlurm(answers={"coproc": text}))
    assert result.status == "ERROR"
    assert "gpu02" in result.reason


def test_the_quickest_exchange_counts() -> None:
    clock = read_exchanges("0 5.5 9\nnoise\n10 10.75 11\n")
    assert clock == Offset(0.25, 0.5)
    assert offset(10, 10.75, 11) == Offset(0.25, 0.5)
    with pytest.raises(NotMeasuredError):
        read_exchanges("nothing\n")


def test_many_clocks_are_not_compared_pair_by_pair() -> None:
    looked = 0

    class Counted(Offset):
        def __sub__(self, other: Offset) -> Offset:
            nonlocal looked
            looked += 1
            return super().__sub__(other)

    clocks: dict[str, Offset] = {f"n{i}": Counted(i * 1e-5, 0) for i in range(2000)}
    measured = judge(clocks, Tally())
    assert measured
    assert measured.value == pytest.approx(0.01999)
    assert looked == 1


def test_one_clock_alone_proves_nothing() -> None:
    tally = Tally()
    assert judge({"a": Offset(0, 0)}, tally) is None
    assert tally.finding().status == "ERROR"


def test_of_two_clocks_none_is_the_right_one() -> None:
    found = clock_culprits({"a": Offset(0, 0), "b": Offset(3, 0)})
    assert {(one.name, one.certainty) for one in found} == {("a", "possible"), ("b", "possible")}
    assert clock_culprits({"a": Offset(3, 0)}) == ()


def test_no_clock_is_blamed_for_a_slow_answer() -> None:
    assert clock_culprits({"a": Offset(0, 0), "b": Offset(0, 0), "c": Offset(0.6, 0.5)}) == ()
