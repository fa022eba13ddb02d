import pytest

from hpcsite.verify.suites.accounting import CHECKS as ACCOUNTING
from hpcsite.verify.suites.smoke import CHECKS as SMOKE
from hpcsite.verify.suites.submission import CHECKS, read_tasks
from tests.unit.verify.fakeslurm import (
    FakeSlurm,
    Job,
    Runner,
    fixture,
    make_site,
)

TIME_LIMIT, EVERY_NODE, MULTI_NODE, _ = CHECKS
SUCCESS, FAILURE = ACCOUNTING
TASKS = "node=gpu01 of=2\nnode=gpu02 of=2\n"


@pytest.mark.parametrize(
    "check", [TIME_LIMIT, EVERY_NODE, *ACCOUNTING, *SMOKE], ids=lambda c: c.name
)
def test_a_healthy_cluster_passes(run_check: Runner, check: object) -> None:
    result = run_check(check, FakeSlurm())
    assert result.status == "PASS", result.reason


def test_a_job_that_outlives_its_limit(run_check: Runner) -> None:
    slurm = FakeSlurm(end_at_limit=False)
    result = run_check(TIME_LIMIT, slurm)
    assert (result.status, result.reason) == (
        "FAIL",
        "a job past its time limit on gpu02 is RUNNING, not TIMEOUT",
    )
    assert slurm.jobs[1].state == "CANCELLED"


def test_a_site_that_lets_jobs_run_over(run_check: Runner) -> None:
    config = fixture("config.txt").replace(
        "OverTimeLimit           = 0 min", "OverTimeLimit = 5 min"
    )
    result = run_check(TIME_LIMIT, FakeSlurm(answers={"config": config}))
    assert (result.status, result.reason) == ("SKIP", "OverTimeLimit lets jobs run on for 5 min")


def on_gpu02(state: str) -> FakeSlurm:
    def start(_: FakeSlurm, job: Job) -> str:
        return state if job.node == "gpu02" else "COMPLETED"

    return FakeSlurm(start=start)


def test_a_job_that_fails_on_one_node_names_it(run_check: Runner) -> None:
    result = run_check(EVERY_NODE, on_gpu02("NODE_FAIL"))
    assert (result.status, result.reason) == (
        "FAIL",
        "the job on gpu02 did not complete: NODE_FAIL",
    )


def test_a_job_that_waits_for_others_is_an_error(run_check: Runner) -> None:
    slurm = on_gpu02("PENDING")
    result = run_check(EVERY_NODE, slurm)
    assert (result.status, result.reason) == ("ERROR", "could not run: nodes busy: gpu02")
    assert slurm.jobs[2].state == "CANCELLED"


def test_a_node_that_goes_down_under_a_waiting_job_fails(run_check: Runner) -> None:
    slurm = on_gpu02("PENDING")
    slurm.answers["scontrol show nodes gpu02"] = (
        '{"nodes": [{"name": "gpu02", "state": ["DOWN"], "reason": "Not responding"}]}'
    )
    result = run_check(EVERY_NODE, slurm)
    assert result.status == "FAIL"
    assert "gpu02" in result.reason


def test_a_node_that_refuses_its_job_takes_no_other_result(run_check: Runner) -> None:
    said = "@ gpu01 0 1\n@ gpu02 1 sbatch: error: QOSMaxSubmitJobPerUserLimit \n"
    slurm = FakeSlurm(answers={"submit-each": said})
    slurm.jobs[1] = Job(1, ["--mem=64M"], "true", "COMPLETED", "gpu01")
    result = run_check(EVERY_NODE, slurm)
    assert (result.status, result.reason) == (
        "ERROR",
        "could not submit a job for gpu02: sbatch: error: QOSMaxSubmitJobPerUserLimit",
    )


def test_a_job_that_slurmctld_forgot_is_found_in_accounting(run_check: Runner) -> None:
    result = run_check(EVERY_NODE, FakeSlurm(forgotten={2}))
    assert result.status == "PASS", result.reason


def test_a_job_that_nobody_knows_fails(run_check: Runner) -> None:
    slurm = FakeSlurm(forgotten={2}, records=lambda found: [f for f in found if f["job_id"] != 2])
    result = run_check(EVERY_NODE, slurm)
    assert (result.status, result.reason) == ("FAIL", "Slurm lost the job on gpu02")


def test_a_forgotten_job_without_accounting_is_an_error(run_check: Runner) -> None:
    slurm = FakeSlurm(forgotten={2}, answers={"sacct": (1, "", "Connection refused\n")})
    result = run_check(EVERY_NODE, slurm)
    assert result.status == "ERROR"
    assert "slurmctld forgot jobs" in result.reason


def test_a_drained_node_keeps_every_node_from_passing(run_check: Runner) -> None:
    result = run_check(EVERY_NODE, FakeSlurm(nodes="nodes-drained.json"))
    assert result.status == "ERROR"
    assert "gpu02 is MIXED+DRAIN" in result.reason


def test_one_job_over_both_nodes(run_check: Runner) -> None:
    assert run_check(MULTI_NODE, FakeSlurm(answers={"srun": TASKS})).status == "PASS"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("node=gpu01 of=2\n", "no task ran on gpu02"),
        ("node=gpu01 of=2\nnode=gpu01 of=2\n", "two tasks ran on the same node"),
        ("node=gpu01 of=1\nnode=gpu02 of=1\n", "wrong number of tasks"),
        (TASKS + "node=gpu09 of=2\n", "a task ran on gpu09"),
        ("", "no task ran on gpu[01-02]"),
    ],
)
def test_a_multi_node_job_that_went_wrong(text: str, said: str) -> None:
    assert said in "; ".join(read_tasks(text, ("gpu01", "gpu02"), "exit code 1"))


def test_a_site_of_one_node_skips_what_needs_two(run_check: Runner) -> None:
    site = make_site(hosts=("head", "login", "gpu01"))
    result = run_check(MULTI_NODE, FakeSlurm(), site)
    assert (result.status, result.reason) == ("SKIP", "needs 2 compute nodes, the site has 1")


def test_two_nodes_of_which_one_is_down_is_an_error(run_check: Runner) -> None:
    result = run_check(MULTI_NODE, FakeSlurm(nodes="nodes-drained.json"))
    assert result.status == "ERROR"
    assert "needs 2 nodes, 1 can be used: gpu02" in result.reason


def test_a_job_that_accounting_lost(run_check: Runner) -> None:
    result = run_check(SUCCESS, FakeSlurm(records=lambda _: []))
    assert (result.status, result.reason) == (
        "FAIL",
        "job 1 ended, but accounting does not know it",
    )


@pytest.mark.parametrize(
    ("position", "count", "said"),
    [
        (3, 0, "gres/gpu=0 in AllocTRES, not 1"),
        (1, 4000, "mem=4000 in AllocTRES, not 200"),
        (0, 0, "no cpu in AllocTRES"),
    ],
)
def test_wrong_tres(run_check: Runner, position: int, count: int, said: str) -> None:
    def records(found: list) -> list:  # type: ignore[type-arg]
        found[0]["tres"]["allocated"][position]["count"] = count
        return found

    result = run_check(SUCCESS, FakeSlurm(records=records))
    assert result.status == "FAIL"
    assert said in result.reason


def test_an_exit_code_that_accounting_forgets(run_check: Runner) -> None:
    def records(found: list) -> list:  # type: ignore[type-arg]
        found[0]["exit_code"] = {}
        found[0]["state"] = {"current": ["COMPLETED"]}
        return found

    result = run_check(FAILURE, FakeSlurm(records=records))
    assert result.status == "FAIL"
    assert "exit code 0:0, not 7:0" in result.reason
    assert "COMPLETED in accounting, not FAILED" in result.reason


def test_a_database_daemon_that_is_down_fails(run_check: Runner) -> None:
    down = (1, "", "sacct: error: Problem talking to the database: Connection refused\n")
    result = run_check(SUCCESS, FakeSlurm(answers={"sacct": down}))
    assert result.status == "FAIL"
    assert "accounting does not answer" in result.reason


def test_a_sacct_that_is_not_there_is_an_error(run_check: Runner) -> None:
    result = run_check(SUCCESS, FakeSlurm(answers={"sacct": (127, "", "sacct: command not found")}))
    assert (result.status, result.reason) == ("ERROR", "sacct: sacct: command not found")


def test_a_job_that_cannot_be_submitted_is_an_error(run_check: Runner) -> None:
    refused = (1, "", "sbatch: error: Invalid account or account/partition combination\n")
    result = run_check(SUCCESS, FakeSlurm(answers={"sbatch": refused}))
    assert result.status == "ERROR"
    assert "Invalid account" in result.reason


def test_the_choices_of_the_user_reach_every_job(run_check: Runner) -> None:
    slurm = FakeSlurm()
    options = {"partition": "gpu", "account": "physics", "qos": "high", "reservation": "maint"}
    run_check(SUCCESS, slurm, **options)
    for name, value in options.items():
        assert f"--{name}={value}" in slurm.jobs[1].flags
    assert "--job-name=hpcsite-run" in slurm.jobs[1].flags
    assert any(flag.startswith("--time=") for flag in slurm.jobs[1].flags)
