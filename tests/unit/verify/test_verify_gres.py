from dataclasses import replace
from pathlib import Path

import pytest

from hpcsite.verify.context import Context
from hpcsite.verify.engine import execute
from hpcsite.verify.results import Result
from hpcsite.verify.suites.gres import CHECKS
from tests.unit.verify.fakeslurm import FakeSlurm, Job, Runner, context_for

FILL, BINDING = CHECKS


def test_a_healthy_node_is_filled_and_one_more_waits(run_check: Runner) -> None:
    slurm = FakeSlurm()
    result = run_check(FILL, slurm)
    assert result.status == "PASS", result.reason
    assert result.nodes == "gpu01"
    assert len(slurm.jobs) == 9
    assert not [job for job in slurm.jobs.values() if job.state in ("RUNNING", "PENDING")]


@pytest.mark.parametrize(
    ("slurm", "said"),
    [
        (FakeSlurm(devices=lambda i: str(min(i, 6))), "device 6 of gpu01 was given to more than"),
        (FakeSlurm(devices=lambda i: f"{i},{i + 8}"), "sees 0,8 on gpu01"),
        (FakeSlurm(devices=lambda _: ""), "sees no device on gpu01"),
        (FakeSlurm(gpus=9), "single-GPU job 9 runs on gpu01, which has 8 GPUs"),
        (FakeSlurm(gpus=7), "7 of 8 single-GPU jobs run on the empty gpu01"),
        (
            FakeSlurm(start=lambda s, j: "PENDING" if j.id == 9 else "RUNNING"),
            "did not start within 20 s",
        ),
        (FakeSlurm(start=lambda s, j: "FAILED" if j.id == 9 else "RUNNING"), "not waiting"),
        (FakeSlurm(answers={" show 1": ""}), "did not tell their device"),
    ],
    ids=["twice", "two each", "none", "ninth runs", "seven run", "never", "ended", "silent"],
)
def test_filling_fails(run_check: Runner, slurm: FakeSlurm, said: str) -> None:
    result = run_check(FILL, slurm)
    assert result.status == "FAIL"
    assert said in result.reason
    assert not [job for job in slurm.jobs.values() if job.state in ("RUNNING", "PENDING")]


def test_a_node_that_never_gets_idle_is_busy(run_check: Runner) -> None:
    busy = (
        '{"nodes": [{"name": "gpu01", "state": ["MIXED"], "alloc_cpus": 2, "partitions": ["gpu"]}]}'
    )
    result = run_check(FILL, FakeSlurm(answers={"scontrol show nodes": busy}), wait_s=3)
    assert (result.status, result.reason.split(":")[0]) == ("ERROR", "could not run")
    assert "nodes busy: gpu01" in result.reason


def shaped(tmp_path: Path, slurm: FakeSlurm, **shape: int) -> Result:
    """Fill nodes of another shape."""
    context = context_for(tmp_path, slurm)
    nodes = {
        name: replace(node, **shape)  # type: ignore[arg-type]
        for name, node in context.cluster.nodes.items()
    }
    return execute(
        FILL, Context(context.core, replace(context.cluster, nodes=nodes), context.evidence)
    )


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ({"effective_cpus": 2}, "with 2 CPUs for jobs it holds 2 single-GPU jobs"),
        ({"cpus_per_core": 2}, "with 8 CPUs for jobs it holds 4 single-GPU jobs"),
        ({"memory_mib": 500}, "with 500 MiB of memory it holds 7 single-GPU jobs"),
    ],
)
def test_a_node_too_small_for_one_job_a_gpu_is_skipped_before_any(
    tmp_path: Path, shape: dict[str, int], said: str
) -> None:
    slurm = FakeSlurm()
    result = shaped(tmp_path, slurm, **shape)
    assert (result.status, result.reason) == ("SKIP", f"gpu01 has 8 GPUs, but {said}")
    assert not slurm.jobs


def test_two_threads_a_core_are_enough_for_as_many_cores(tmp_path: Path) -> None:
    assert shaped(tmp_path, FakeSlurm(), cpus_per_core=2, effective_cpus=16).status == "PASS"


def test_a_limit_of_the_users_is_no_fault_of_the_node(run_check: Runner) -> None:
    def start(slurm: FakeSlurm, job: Job) -> str:
        job.reason = "QOSMaxJobsPerUserLimit"
        return "PENDING" if job.id > 2 else "RUNNING"

    result = run_check(FILL, FakeSlurm(start=start))
    assert result.status == "ERROR"
    assert "6 PENDING (QOSMaxJobsPerUserLimit)" in result.reason


def test_jobs_that_others_keep_from_running_are_busy_not_failed(run_check: Runner) -> None:
    result = run_check(FILL, FakeSlurm(start=lambda s, j: "PENDING"))
    assert result.status == "ERROR"
    assert "nodes busy: gpu01" in result.reason


def answers(*devices: str) -> FakeSlurm:
    blocks = "".join(f"@ gpu0{i + 1} 0\n> devices={seen}\n" for i, seen in enumerate(devices))
    return FakeSlurm(answers={"--gres=gpu:2": blocks})


def test_two_gpus_on_each_node(run_check: Runner) -> None:
    result = run_check(BINDING, answers("0,1", "4,5"))
    assert (result.status, result.nodes) == ("PASS", "gpu[01-02]")


@pytest.mark.parametrize("seen", ["0", "0,1,2", "0,0", "", "NoDevFiles"])
def test_a_wrong_set_of_devices_fails_and_names_the_node(run_check: Runner, seen: str) -> None:
    result = run_check(BINDING, answers("0,1", seen))
    assert result.status == "FAIL"
    assert result.reason.startswith("gpu02: a job of 2 GPUs has ")


def test_a_job_that_does_not_run_fails(run_check: Runner) -> None:
    text = "@ gpu01 0\n> devices=0,1\n@ gpu02 1\n! srun: error: Task launch failed on node gpu02\n"
    result = run_check(BINDING, FakeSlurm(answers={"--gres=gpu:2": text}))
    assert result.status == "FAIL"
    assert "gpu02: the job did not run: srun: error: Task launch failed" in result.reason


def test_a_busy_node_is_an_error(run_check: Runner) -> None:
    text = (
        "@ gpu01 0\n> devices=0,1\n@ gpu02 1\n"
        "! srun: error: Unable to allocate resources: Requested nodes are busy\n"
    )
    result = run_check(BINDING, FakeSlurm(answers={"--gres=gpu:2": text}))
    assert result.status == "ERROR"
    assert "nodes busy: gpu02" in result.reason


def test_a_drained_node_is_not_passed_over(run_check: Runner) -> None:
    slurm = answers("0,1")
    slurm.nodes = "nodes-drained.json"
    result = run_check(BINDING, slurm)
    assert result.status == "ERROR"
    assert "gpu02 is" in result.reason
    assert "bad fan" in result.reason
