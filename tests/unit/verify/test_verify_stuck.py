import json
from typing import Any

import pytest

from hpcsite.slurm.node_records import read_config, read_over_time_limits
from hpcsite.verify.suites.stuck import STUCK, Limits
from tests.unit.verify.fakeslurm import FakeSlurm, Runner, fixture

NOW = 1_796_000_000
CONFIG = fixture("config.txt")


def at(seconds_ago: int) -> dict[str, Any]:
    return {"set": True, "infinite": False, "number": NOW - seconds_ago}


def job(number: int, *states: str, nodes: str = "gpu01", **times: object) -> dict[str, Any]:
    return {
        "job_id": number,
        "job_state": list(states),
        "nodes": nodes,
        "partition": "gpu",
        **times,
    }


def queue(*listed: dict[str, Any]) -> dict[str, str | tuple[int, str, str]]:
    return {"exec squeue": f"{NOW}\n{json.dumps({'jobs': listed})}"}


def nodes_with(**states: list[str]) -> str:
    return json.dumps({"nodes": [{"name": name, "state": said} for name, said in states.items()]})


def test_limits_are_those_of_slurm_conf() -> None:
    assert Limits.of(read_config(CONFIG)) == Limits(150, 130, 150)
    assert Limits.of({}) == Limits(150, 130, 150)
    changed = {"KillWait": "5 sec", "PrologEpilogTimeout": "100", "OverTimeLimit": "10 min"}
    assert Limits.of(changed) == Limits(225, 230, 825)
    assert Limits.of({"OverTimeLimit": "UNLIMITED"}).over is None
    assert Limits.of({"OverTimeLimit": "65535 min"}).over is None


def test_jobs_that_come_and_go_pass(run_check: Runner) -> None:
    usual = queue(
        job(1, "COMPLETED", "COMPLETING", end_time=at(100)),
        job(2, "RUNNING", "CONFIGURING", start_time=at(100), end_time=at(-500)),
        job(3, "RUNNING", start_time=at(9000), end_time=at(140)),
        job(4, "RUNNING", end_time={"set": False, "infinite": True, "number": 0}),
        job(5, "PENDING", nodes="", end_time=at(0)),
        job(6, "COMPLETED", end_time=at(5000)),
        job(7, "SUSPENDED", end_time=at(5000)),
    )
    result = run_check(STUCK, FakeSlurm(answers=usual))
    assert (result.status, result.reason) == ("PASS", "7 jobs seen")


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (
            job(9, "CANCELLED", "COMPLETING", end_time=at(400)),
            "job 9 is COMPLETING since 400 s, at most 150 s is usual, on gpu01",
        ),
        (
            job(9, "RUNNING", "CONFIGURING", start_time=at(400), end_time=at(-100)),
            "job 9 is CONFIGURING since 400 s, at most 130 s is usual, on gpu01",
        ),
        (
            job(9, "RUNNING", end_time=at(400)),
            "job 9 runs past its limit since 400 s, at most 150 s is usual, on gpu01",
        ),
    ],
)
def test_a_stuck_job_is_named_with_its_node(
    run_check: Runner, one: dict[str, Any], said: str
) -> None:
    answers = queue(one)
    answers["scontrol show partitions"] = fixture("partitions.json")
    result = run_check(STUCK, FakeSlurm(answers=answers))
    assert (result.status, result.reason) == ("FAIL", said)
    assert [(c.name, c.certainty) for c in result.culprits] == [("gpu01", "likely")]
    assert "gpu01" in result.remedy


def test_of_many_nodes_those_that_are_not_done_are_blamed(run_check: Runner) -> None:
    answers = queue(job(9, "COMPLETED", "COMPLETING", nodes="gpu[01-02]", end_time=at(400)))
    answers["scontrol show nodes"] = nodes_with(gpu01=["IDLE"], gpu02=["IDLE", "COMPLETING"])
    result = run_check(STUCK, FakeSlurm(answers=answers))
    assert [culprit.name for culprit in result.culprits] == ["gpu02"]
    answers["scontrol show nodes"] = nodes_with(gpu01=["IDLE"], gpu02=["IDLE"])
    result = run_check(STUCK, FakeSlurm(answers=answers))
    assert [(c.name, c.certainty) for c in result.culprits] == [
        ("gpu01", "possible"),
        ("gpu02", "possible"),
    ]


def test_a_partition_may_allow_more_time(run_check: Runner) -> None:
    answers = queue(job(9, "RUNNING", end_time=at(400)))
    partitions = json.loads(fixture("partitions.json"))
    over = {"set": True, "infinite": False, "number": 10}
    partitions["partitions"][0]["maximums"]["over_time_limit"] = over
    answers["scontrol show partitions"] = json.dumps(partitions)
    assert run_check(STUCK, FakeSlurm(answers=answers)).status == "PASS"


def test_how_partitions_say_what_they_allow() -> None:
    text = "PartitionName=a OverTimeLimit=NONE State=UP\nPartitionName=b OverTimeLimit=5 State=UP\n"
    assert read_over_time_limits(text) == {"b": 5}
    assert read_over_time_limits(fixture("partitions.json")) == {}
    old = '{"partitions": [{"name": "c", "maximums": {"over_time_limit": 3}}]}'
    assert read_over_time_limits(old) == {"c": 3}


def test_jobs_that_are_hidden_are_never_a_pass(run_check: Runner) -> None:
    config = CONFIG.replace("PrivateData             = none", "PrivateData = jobs,usage")
    answers: dict[str, str | tuple[int, str, str]] = {"config": config}
    hidden = run_check(STUCK, FakeSlurm(answers=answers | {"exec squeue": (9, "", "")}))
    assert hidden.status == "SKIP"
    assert "PrivateData=jobs" in hidden.reason
    assert run_check(STUCK, FakeSlurm(answers=answers | queue())).status == "PASS"


@pytest.mark.parametrize(
    ("answer", "said"),
    [((1, "", "squeue: error: no"), "squeue: squeue: error: no"), ('{"jobs": []}', "its time")],
)
def test_a_queue_that_is_not_told_is_an_error(
    run_check: Runner, answer: str | tuple[int, str, str], said: str
) -> None:
    result = run_check(STUCK, FakeSlurm(answers={"exec squeue": answer}))
    assert result.status == "ERROR"
    assert said in result.reason
