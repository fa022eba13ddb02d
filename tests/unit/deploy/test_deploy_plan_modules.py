"""What check mode is told by hpcsite's own modules, and the command line around it."""

import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from hpcsite.cli.deploy import command as deploy_command
from hpcsite.deploy.plan.collect import HostState
from hpcsite.deploy.rundir import make_run_dir
from hpcsite.errors import UsageError
from hpcsite.paths import content_dir

NVIDIA = {
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\n"
    "GCC version:  gcc version 12.2.0\n": "535.183.01",
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (d)\n": (
        "570.86.15"
    ),
    "nonsense 1.2.3\n": "",
}


def load(name: str) -> ModuleType:
    path = content_dir() / "plugins" / "modules" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_module(name: str, path: str = "", **arguments: Any) -> dict[str, Any]:  # noqa: ANN401
    done = subprocess.run(
        [sys.executable, content_dir() / "plugins/modules" / f"{name}.py"],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": {**arguments, "_ansible_check_mode": True}}),
        env={**os.environ, "PATH": f"{path}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.parametrize(("text", "version"), NVIDIA.items())
def test_the_loaded_driver_is_read(tmp_path: Path, text: str, version: str) -> None:
    (tmp_path / "version").write_text(text, encoding="utf-8")
    assert load("running_state").nvidia_driver(str(tmp_path / "version")) == version


def test_without_a_driver_there_is_none(tmp_path: Path) -> None:
    assert load("running_state").nvidia_driver(str(tmp_path / "version")) == ""


def squeue(tmp_path: Path, script: str) -> str:
    file = tmp_path / "squeue"
    file.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    file.chmod(0o755)
    return str(tmp_path)


def test_jobs_are_read_only_where_they_are_asked_for(tmp_path: Path) -> None:
    path = squeue(tmp_path, "echo '7|alice|gpu[01-02]'; echo '8_3|bob|gpu03'; echo odd")
    asked = HostState(**run_module("running_state", path, jobs=True)["state"])
    assert asked.jobs == [
        {"id": "7", "user": "alice", "nodes": "gpu[01-02]"},
        {"id": "8_3", "user": "bob", "nodes": "gpu03"},
    ]
    assert HostState(**run_module("running_state", path)["state"]).jobs is None


def test_a_slurmctld_that_does_not_answer_is_no_failure(tmp_path: Path) -> None:
    path = squeue(tmp_path, "echo 'slurm_load_jobs error: Unable to contact' >&2; exit 1")
    state = HostState(**run_module("running_state", path, jobs=True)["state"])
    assert state.jobs is None
    assert "Unable to contact" in state.jobs_problem


def test_an_effect_is_told_back() -> None:
    result = run_module("plan_effect", kind="reload", subject="nfs-server", because=["/etc/a"])
    assert result["changed"]
    assert result["effect"] == {
        "kind": "reload",
        "subject": "nfs-server",
        "because": ["/etc/a"],
        "hosts": [],
    }


def test_files_that_changed_since_a_service_started_are_named(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.touch()
    new.touch()
    now, monotonic = time.time(), time.monotonic()
    os.utime(old, (now - 100, now - 100))
    started_us = int((monotonic - 50) * 1e6)
    files = [str(old), str(new), str(tmp_path / "none")]
    assert load("daemon").younger_files(started_us, files, now, monotonic) == [str(new)]


def test_effects_are_said_in_check_mode_only() -> None:
    """A deploy that says that it would do something would count it as a change, every time."""
    files = sorted((content_dir() / "roles").rglob("tasks/*.yml"))
    tasks = [(file, task) for file in files for task in yaml.safe_load(file.read_text()) or []]
    found = [(file, task) for file, task in tasks if "plan_effect" in task]
    assert found
    guarded = (content_dir() / "roles/slurmctld/tasks/run.yml").read_text("utf-8")
    for file, task in found:
        if file.name == "plan_drain.yml":
            assert "import_tasks: plan_drain.yml\n  when: ansible_check_mode\n" in guarded
        else:
            assert "ansible_check_mode" in str(task["when"]), f"{file}: {task['name']}"


def test_a_plan_has_a_run_folder_of_its_own_and_is_not_the_latest_deploy(state: Path) -> None:
    deployed = make_run_dir("trial")
    planned = make_run_dir("trial", "plan")
    runs = state / "sites" / "trial" / "runs"
    assert planned.path.name.endswith("-plan")
    assert (runs / "latest").resolve() == deployed.path.resolve()
    assert planned.path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "options", [["--check"], ["--limit", "gpu01"], ["--tags", "base"], ["--rotate-munge-key"]]
)
def test_a_plan_alone_says_what_is_deployed(options: list[str]) -> None:
    """Else more than was looked at could be deployed."""
    refused = CliRunner().invoke(deploy_command, ["no-such-site", "--plan", "p", *options])
    assert isinstance(refused.exception, UsageError)
    assert "--plan does not go with" in str(refused.exception)
