"""An impossible request must be refused, and for what is wrong with it."""

import pytest

from hpcsite.slurm.node_records import read_time_limits
from hpcsite.verify.suites.submission import CHECKS
from tests.unit.verify.fakeslurm import FakeSlurm, Runner, fixture

BAD_REQUESTS = next(check for check in CHECKS if check.name == "bad_requests")
Answers = dict[str, str | tuple[int, str, str]]


def refusal(why: str) -> tuple[int, str, str]:
    return (1, "", f"sbatch: error: Batch job submission failed: {why}\n")


PARTITION = refusal("Invalid partition name specified")
# What Slurm 24.11 said in the lab.
REFUSALS: Answers = {
    "no-such-partition": PARTITION,
    "--nodes=3": refusal("Node count specification invalid"),
    "--gres=gpu:9": refusal("Requested node configuration is not available"),
}
TOO_LONG = refusal("Requested time limit is invalid (missing or exceeds some limit)")
ENFORCED: Answers = {
    "config": fixture("config.txt").replace(
        "EnforcePartLimits       = NO", "EnforcePartLimits = ALL"
    ),
    "show partitions": fixture("partitions.json"),
}


def test_requests_refused_for_what_is_wrong_with_them_pass(run_check: Runner) -> None:
    result = run_check(BAD_REQUESTS, FakeSlurm(answers={**REFUSALS}))
    assert (result.status, result.reason) == (
        "PASS",
        "Time over a partition's limit was not tried: EnforcePartLimits is NO",
    )


def test_time_over_the_partitions_limit_is_refused_where_limits_hold(run_check: Runner) -> None:
    slurm = FakeSlurm(answers=ENFORCED | REFUSALS | {"--time=61": TOO_LONG})
    result = run_check(BAD_REQUESTS, slurm)
    assert (result.status, result.reason) == ("PASS", "")
    assert "--partition=gpu --time=61" in slurm.asked[-1]


def test_time_over_the_limit_that_is_taken_fails(run_check: Runner) -> None:
    slurm = FakeSlurm(answers=ENFORCED | REFUSALS)
    result = run_check(BAD_REQUESTS, slurm)
    assert (result.status, result.reason) == (
        "FAIL",
        "Slurm took a job that asks for 61 minutes in partition gpu, which allows 60",
    )


@pytest.mark.parametrize("piece", ["--nodes=3", "--gres=gpu:9"])
def test_a_refusal_for_another_reason_proves_nothing(run_check: Runner, piece: str) -> None:
    result = run_check(BAD_REQUESTS, FakeSlurm(answers=REFUSALS | {piece: PARTITION}))
    assert result.status == "ERROR"
    assert "is not refused for that: sbatch: error" in result.reason
    assert "Invalid partition name specified" in result.reason


def test_an_impossible_request_that_is_taken_fails_and_is_cancelled(run_check: Runner) -> None:
    answers = {piece: said for piece, said in REFUSALS.items() if "gpu:9" not in piece}
    slurm = FakeSlurm(answers=answers)
    result = run_check(BAD_REQUESTS, slurm)
    assert (result.status, result.reason) == (
        "FAIL",
        "Slurm took a job that asks for 9 GPUs on a node",
    )
    assert slurm.jobs[1].state == "CANCELLED"


@pytest.mark.parametrize(
    "error",
    [
        "sbatch: error: Unable to contact slurm controller (connect failure)\n",
        "bash: sbatch: command not found\n",
    ],
)
def test_a_request_that_nobody_judged_is_an_error(run_check: Runner, error: str) -> None:
    result = run_check(BAD_REQUESTS, FakeSlurm(answers={"sbatch": (1, "", error)}))
    assert result.status == "ERROR"


def test_time_limits_of_partitions_are_read() -> None:
    assert read_time_limits(fixture("partitions.json")) == {"gpu": 60}
    text = fixture("partitions.txt")
    assert read_time_limits(text) == {"gpu": 24 * 60}
    assert read_time_limits(text.replace("MaxTime=1-00:00:00", "MaxTime=01:30:00")) == {"gpu": 90}
    assert read_time_limits(text.replace("MaxTime=1-00:00:00", "MaxTime=UNLIMITED")) == {}
