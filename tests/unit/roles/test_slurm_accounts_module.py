"""The module slurm_accounts, with programs that only note what they were asked to do."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hpcsite.paths import content_dir
from tests.unit.roles.test_modules import load, run_module

SACCTMGR = """\
#!/bin/sh
echo "$*" >> "{folder}/ran"
case "$*" in
  *broken*) echo " Error with request: Access/permission denied" >&2; exit 1 ;;
  *busy*) echo " Error with request: Job(s) active, cancel job(s) before remove" >&2; exit 0 ;;
esac
"""
SQUEUE = """\
#!/bin/sh
case "$*" in
  *--user=bob*) printf '7\\n12\\n' ;;
  *--user=gone*) echo "squeue: error: Invalid user: gone" >&2; exit 1 ;;
  *--user=mute*) echo "squeue: error: Unable to contact slurm controller" >&2; exit 1 ;;
esac
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in (("sacctmgr", SACCTMGR), ("squeue", SQUEUE)):
        program = tmp_path / name
        program.write_text(text.replace("{folder}", str(tmp_path)))
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def step(name: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - any option
    return {"text": name, "argv": ["sacctmgr", name], **more}


def keep(folder: Path, *steps: dict[str, Any], **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return run_module(
        "slurm_accounts", steps=list(steps), record=str(folder / "state/made.json"), **more
    )


def fail(folder: Path, *steps: dict[str, Any]) -> dict[str, Any]:
    arguments = {"steps": list(steps), "record": str(folder / "state/made.json")}
    done = subprocess.run(
        [sys.executable, content_dir() / "plugins/modules/slurm_accounts.py"],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}),
        capture_output=True,
        text=True,
        check=False,
    )
    result: dict[str, Any] = json.loads(done.stdout)
    assert result["failed"] is True
    return result


def ran(folder: Path) -> list[str]:
    path = folder / "ran"
    return path.read_text().split() if path.exists() else []


def made(folder: Path) -> list[str]:
    keys: list[str] = json.loads((folder / "state/made.json").read_text())["made"]
    return keys


def test_steps_are_run_in_order_and_what_they_made_is_noted(folder: Path) -> None:
    result = keep(
        folder,
        step("one", makes=["qos high"]),
        step("two", removes=["qos low"]),
        standing=["qos low", "account physics"],
        before="a\n",
        after="b\n",
    )
    assert ran(folder) == ["one", "two"]
    assert result["changed"] is True
    assert [each["item"] for each in result["results"]] == ["one", "two"]
    assert (result["diff"]["before"], result["diff"]["after"]) == ("a\n", "b\n")
    assert made(folder) == ["account physics", "qos high"]


def test_no_steps_change_nothing(folder: Path) -> None:
    keep(folder, step("one", makes=["qos high"]))
    assert keep(folder, standing=["qos high"])["changed"] is False
    assert made(folder) == ["qos high"]


def test_a_check_runs_nothing_and_says_what_it_would(folder: Path) -> None:
    result = keep(folder, step("one", makes=["qos high"]), _ansible_check_mode=True)
    assert result["changed"] is True
    assert [each["item"] for each in result["results"]] == ["one"]
    assert ran(folder) == []
    assert not (folder / "state").exists()


def test_a_failure_keeps_back_what_needs_it_and_all_removals(folder: Path) -> None:
    result = fail(
        folder,
        step("broken", makes=["account physics"]),
        step("below", makes=["account optics"], needs=["account physics"]),
        step("lowest", needs=["account optics"]),
        step("other", makes=["account chem"], needs=["account root"]),
        step("removal", removes=["account dyes"]),
    )
    assert ran(folder) == ["broken", "other"]
    title, first, second, third = result["msg"].splitlines()
    assert title == "3 of 5 changes of Slurm's accounts failed:"
    assert first == "broken: Error with request: Access/permission denied"
    assert second == "below: not done, it needs the account physics"
    assert third == "lowest: not done, it needs the account optics"
    assert result["left_out"] == ["removal: not done, because other changes failed"]
    assert made(folder) == ["account chem"]


def test_a_refusal_with_status_zero_is_a_failure(folder: Path) -> None:
    assert "Job(s) active" in fail(folder, step("busy"))["msg"]


def test_a_removal_that_slurmdbd_refuses_for_now_is_left(folder: Path) -> None:
    result = keep(folder, step("busy", removes=["x"]), step("next", removes=["y"]))
    assert "Job(s) active" in result["left_out"][0]
    assert [each["item"] for each in result["results"]] == ["next"]


@pytest.mark.parametrize(
    ("user", "reason"), [("bob", "it has jobs: 7, 12"), ("mute", "it may have jobs: ")]
)
def test_nothing_is_removed_under_jobs(folder: Path, user: str, reason: str) -> None:
    result = keep(folder, step("removal", removes=["x"], jobs=[f"--user={user}"]), standing=["x"])
    assert ran(folder) == []
    assert result["changed"] is False
    assert reason in result["left_out"][0]
    assert made(folder) == ["x"]


def test_whom_the_host_does_not_know_is_slurmdbd_s_to_guard(folder: Path) -> None:
    keep(folder, step("removal", removes=["x"], jobs=["--user=gone"]), standing=["x"])
    assert ran(folder) == ["removal"]


def test_the_filters_hand_a_site_over() -> None:
    filters = load("filter", "hpcsite_accounts").FilterModule().filters()
    listings = filters["slurm_account_listings"]("lab")
    assert [each["name"] for each in listings] == ["qos", "accounts", "associations", "users"]
    variables = {
        "site_name": "lab",
        "site_accounts": [{"name": "physics"}],
        "site_users": [{"name": "alice", "uid": 2001, "accounts": ["physics"]}],
        "site_partitions": "is not looked at",
    }
    answers = [{"item": each, "stdout": ""} for each in listings]
    plan = filters["slurm_accounts_plan"](variables, "lab", answers, [], False)
    assert [each["text"] for each in plan["steps"]] == [
        "account physics: new, below root",
        "association alice in physics: new",
    ]
