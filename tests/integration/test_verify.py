"""`hpcsite verify` on a deployed lab: it passes, and it names what is broken on purpose."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest

from hpcsite.site.connection import ssh_argv
from hpcsite.site.load import load_site
from hpcsite.verify.results import Run

pytestmark = pytest.mark.lab

HPCSITE = str(Path(sys.executable).with_name("hpcsite"))
WITHIN_S = 60
HANGING_WITHIN_S = 90


class Deployed(Protocol):
    """What is used of the shared site."""

    inventory: Path
    state: Path


@pytest.fixture
def inventory(deployed_site: Deployed, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a deployed site, whose state is kept where its own commands keep it."""
    monkeypatch.setenv("HPCSITE_STATE_DIR", str(deployed_site.state))
    return deployed_site.inventory


def on(inventory: Path, host: str, command: str) -> str:
    site = load_site(inventory)
    argv = [*ssh_argv(site, site.hosts[host]), command]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def verify(inventory: Path, *words: str) -> tuple[int, dict[str, Any], str]:
    argv = [HPCSITE, "verify", str(inventory), "--json", *words]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, json.loads(done.stdout or "{}"), done.stderr


def by_check(run: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {result["check"]: result for result in run["results"]}


def queue(inventory: Path) -> str:
    return on(inventory, "head", "squeue --noheader --states=PENDING,RUNNING,SUSPENDED")


def wait_until_idle(inventory: Path) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        states = on(inventory, "head", "sinfo --noheader --Node --format=%T").split()
        if set(states) == {"idle"}:
            return
        time.sleep(1)
    pytest.fail(f"the nodes do not get idle again: {states}")


def wait_for_a_job(inventory: Path) -> None:
    end = time.monotonic() + 30
    while "hpcsite-" not in on(inventory, "head", "squeue --noheader --format=%j"):
        assert time.monotonic() < end, "no job was submitted"
        time.sleep(0.2)


@contextmanager
def broken(inventory: Path, host: str, breaks: str, mends: str) -> Iterator[None]:
    on(inventory, host, breaks)
    try:
        yield
    finally:
        on(inventory, host, mends)
        wait_until_idle(inventory)


def test_a_healthy_site_passes_in_time(inventory: Path) -> None:
    begin = time.monotonic()
    code, run, _ = verify(inventory)
    seconds = time.monotonic() - begin
    found = by_check(run)
    assert code == 0, {name: result["reason"] for name, result in found.items()}
    assert seconds <= WITHIN_S
    assert run["schema_version"] == 1
    assert Run.model_validate(run).summary.failed == 0
    skipped = {(one["suite"], one["check"]) for one in run["results"] if one["status"] == "SKIP"}
    # The lab has neither RDMA nor NFS, and cgroups only where this computer's kernel hands them on.
    lacking = {"fabric", "storage"}
    nothing_shared = {
        (one["suite"], one["check"])
        for one in run["results"]
        if one["suite"] in lacking and one["check"] != "scratch"
    }
    assert {each for each in skipped if each[0] != "isolation"} == {
        ("node", "cuda"),
        *nothing_shared,
    }
    assert found["cuda"]["reason"] == "no CUDA device"
    measured = {one["name"]: one for result in run["results"] for one in result["measurements"]}
    assert measured["latency"]["unit"] == "us"
    assert measured["bandwidth"]["unit"] == "GB/s"
    assert measured["random_read"]["at"]["path"] == "/var/tmp"
    assert measured["clock_difference_max"]["reference"]["value"] == 0.5
    assert not queue(inventory)
    assert "hpcsite" not in on(inventory, "login", "ls /tmp")


def test_a_drained_node_is_named_with_its_reason(inventory: Path) -> None:
    drain = "scontrol update nodename=gpu02 state=drain reason='fan is loud'"
    resume = "scontrol update nodename=gpu02 state=resume"
    with broken(inventory, "head", drain, resume):
        code, run, _ = verify(inventory, "node")
    assert code == 1
    state = by_check(run)["state"]
    assert state["status"] == "FAIL"
    assert "gpu02" in state["reason"]
    assert "fan is loud" in state["reason"]


def test_a_node_that_somebody_drained_fails_no_deploy(inventory: Path) -> None:
    drain = "scontrol update nodename=gpu02 state=drain reason='fan is loud'"
    resume = "scontrol update nodename=gpu02 state=resume"
    with broken(inventory, "head", drain, resume):
        code, run, _ = verify(inventory, "smoke")
    found = by_check(run)
    assert code == 0, found
    assert "gpu02 is IDLE+DRAIN (fan is loud)" in found["nodes"]["reason"]
    assert found["job"]["nodes"] == "gpu01"


def test_a_slurmd_that_hangs_is_named_in_time(inventory: Path) -> None:
    # What it missed while it hung is sent to it again soon after it starts, not before.
    stop, go = "pkill -STOP -x slurmd", "pkill -CONT -x slurmd; systemctl restart slurmd"
    begin = time.monotonic()
    with broken(inventory, "gpu02", stop, go):
        code, run, _ = verify(inventory)
        seconds = time.monotonic() - begin
    assert code == 1
    assert "gpu02" in by_check(run)["answers"]["reason"]
    assert by_check(run)["gpu_fill"]["status"] == "PASS"
    assert seconds <= HANGING_WITHIN_S


def test_a_run_from_another_computer_is_left_alone(
    inventory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    argv = [HPCSITE, "verify", str(inventory), "--check", "time_limit"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        wait_for_a_job(inventory)
        # The lock is in the state folder: another one is another computer.
        monkeypatch.setenv("HPCSITE_STATE_DIR", str(tmp_path))
        code, run, said = verify(inventory, "smoke")
        process.communicate(timeout=120)
    assert process.returncode == 0
    assert (code, run) == (4, {})
    assert "this cluster is being verified already by" in said


def test_a_node_whose_slurmd_is_gone_is_no_success(inventory: Path) -> None:
    with broken(inventory, "gpu02", "systemctl stop slurmd", "systemctl start slurmd"):
        code, run, _ = verify(inventory, "node", "--wait", "10")
    assert code in (1, 4)
    assert any("gpu02" in result["reason"] for result in run["results"])


def test_ctrl_c_leaves_no_job(inventory: Path) -> None:
    argv = [HPCSITE, "verify", str(inventory), "slurm"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        wait_for_a_job(inventory)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert process.returncode == 130
    assert not queue(inventory)
    wait_until_idle(inventory)


def test_a_second_run_is_told_who_runs(inventory: Path) -> None:
    argv = [HPCSITE, "verify", str(inventory), "--check", "time_limit"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        wait_for_a_job(inventory)
        code, run, said = verify(inventory, "smoke")
        process.communicate(timeout=120)
    assert process.returncode == 0
    assert (code, run) == (4, {})
    assert f"process {process.pid}" in said
    assert "hint:" in said


def test_a_killed_runs_jobs_are_gone_after_the_next_run(inventory: Path) -> None:
    argv = [HPCSITE, "verify", str(inventory), "--check", "time_limit"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        wait_for_a_job(inventory)
        process.kill()
    code, _, said = verify(inventory, "smoke")
    assert code == 0, said
    assert not queue(inventory)


def test_busy_nodes_are_an_error_never_a_verdict(inventory: Path) -> None:
    submit = (
        "runuser -u alice -- sbatch --exclusive --nodes=2 --job-name=other --chdir=/ "
        "--output=/dev/null --wrap='sleep 300'"
    )
    with broken(inventory, "login", submit, "runuser -u alice -- scancel --me --name=other"):
        code, run, _ = verify(inventory, "slurm", "--wait", "3", "--check", "gpu_fill")
    assert code == 4
    assert "nodes busy: gpu01" in by_check(run)["gpu_fill"]["reason"]


def test_a_stored_run_is_shown_again(inventory: Path) -> None:
    _, run, _ = verify(inventory, "smoke")
    argv = [HPCSITE, "report", run["run_id"], "--format", "json"]
    shown = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True)
    assert json.loads(shown.stdout) == run
