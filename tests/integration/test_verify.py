"""`hpcsite verify` on a deployed lab: it passes, and it names what is broken on purpose."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hpcsite.site.connection import ssh_argv
from hpcsite.site.load import load_site
from hpcsite.verify.results import Run

pytestmark = pytest.mark.lab

HPCSITE = str(Path(sys.executable).with_name("hpcsite"))
WITHIN_S = 60


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


def test_a_healthy_site_passes_in_time(deployed_site: Path) -> None:
    begin = time.monotonic()
    code, run, _ = verify(deployed_site)
    seconds = time.monotonic() - begin
    found = by_check(run)
    assert code == 0, {name: result["reason"] for name, result in found.items()}
    assert seconds <= WITHIN_S
    assert run["schema_version"] == 1
    assert Run.model_validate(run).summary.failed == 0
    assert {name for name, result in found.items() if result["status"] == "SKIP"} == {"cuda"}
    assert found["cuda"]["reason"] == "no CUDA device"
    measured = {one["name"]: one for result in run["results"] for one in result["measurements"]}
    assert measured["latency"]["unit"] == "us"
    assert measured["bandwidth"]["unit"] == "GB/s"
    assert measured["clock_difference_max"]["reference"]["value"] == 0.5
    assert not queue(deployed_site)
    assert "hpcsite" not in on(deployed_site, "login", "ls /tmp")


def test_a_drained_node_is_named_with_its_reason(deployed_site: Path) -> None:
    drain = "scontrol update nodename=gpu02 state=drain reason='fan is loud'"
    resume = "scontrol update nodename=gpu02 state=resume"
    with broken(deployed_site, "head", drain, resume):
        code, run, _ = verify(deployed_site, "node")
    assert code == 1
    state = by_check(run)["state"]
    assert state["status"] == "FAIL"
    assert "gpu02" in state["reason"]
    assert "fan is loud" in state["reason"]


def test_a_node_whose_slurmd_is_gone_is_no_success(deployed_site: Path) -> None:
    with broken(deployed_site, "gpu02", "systemctl stop slurmd", "systemctl start slurmd"):
        code, run, _ = verify(deployed_site, "node", "--wait", "10")
    assert code in (1, 4)
    assert any("gpu02" in result["reason"] for result in run["results"])


def test_ctrl_c_leaves_no_job(deployed_site: Path) -> None:
    argv = [HPCSITE, "verify", str(deployed_site), "slurm"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        wait_for_a_job(deployed_site)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert process.returncode == 130
    assert not queue(deployed_site)
    wait_until_idle(deployed_site)


def test_a_second_run_is_told_who_runs(deployed_site: Path) -> None:
    argv = [HPCSITE, "verify", str(deployed_site), "--check", "time_limit"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        wait_for_a_job(deployed_site)
        code, run, said = verify(deployed_site, "smoke")
        process.communicate(timeout=120)
    assert process.returncode == 0
    assert (code, run) == (4, {})
    assert f"process {process.pid}" in said
    assert "hint:" in said


def test_a_killed_runs_jobs_are_gone_after_the_next_run(deployed_site: Path) -> None:
    argv = [HPCSITE, "verify", str(deployed_site), "--check", "time_limit"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        wait_for_a_job(deployed_site)
        process.kill()
    code, _, said = verify(deployed_site, "smoke")
    assert code == 0, said
    assert not queue(deployed_site)


def test_busy_nodes_are_an_error_never_a_verdict(deployed_site: Path) -> None:
    submit = (
        "runuser -u alice -- sbatch --exclusive --nodes=2 --job-name=other --chdir=/ "
        "--output=/dev/null --wrap='sleep 300'"
    )
    with broken(deployed_site, "login", submit, "runuser -u alice -- scancel --me --name=other"):
        code, run, _ = verify(deployed_site, "slurm", "--wait", "3", "--check", "gpu_fill")
    assert code == 4
    assert "nodes busy: gpu01" in by_check(run)["gpu_fill"]["reason"]


def test_a_stored_run_is_shown_again(deployed_site: Path) -> None:
    _, run, _ = verify(deployed_site, "smoke")
    argv = [HPCSITE, "report", run["run_id"], "--format", "json"]
    shown = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True)
    assert json.loads(shown.stdout) == run
