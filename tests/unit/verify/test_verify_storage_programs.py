"""The agent and its driver as they are, on a folder of this computer in place of a shared one."""

import getpass
import json
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from hpcsite.site.model import NfsExport
from hpcsite.verify.findings import Tally
from hpcsite.verify.session import Session, packed, step, step_id
from hpcsite.verify.suites.storage_coherence import (
    coherence_steps,
    judge_coherence,
    judge_locks,
    lock_steps,
)
from hpcsite.verify.suites.storage_files import file_steps, judge_files
from hpcsite.verify.suites.storage_mounts import Folder

HOSTS = ("gpu01", "gpu02", "head")


def lead(steps: list[dict[str, Any]], hosts: tuple[str, ...] = HOSTS, **more: object) -> list[Any]:
    *nodes, here = hosts
    task = {
        "starters": [
            {"argv": ["env", f"SLURMD_NODENAME={node}"], "hosts": [node]} for node in nodes
        ],
        "here": here,
        "hosts": hosts,
        "hello_s": 30,
        "lasts_s": 60,
        "steps": steps,
        **more,
    }
    driver = files("hpcsite.verify") / "programs/storage_driver.py"
    said = subprocess.run(
        [sys.executable, str(driver), packed(task)], capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in said.stdout.splitlines()]


def session_of(said: list[Any]) -> Session:
    session = Session()
    for one in said:
        if "host" in one:
            session.answers.setdefault(one["id"], {}).setdefault(one["host"], one)
    return session


def folder_of(path: Path, hosts: tuple[str, ...] = HOSTS) -> Folder:
    export = NfsExport(path=str(path))
    return Folder(export, "server", hosts, hosts, str(path))


@pytest.mark.parametrize("hosts", [HOSTS, HOSTS[:2]])
def test_one_folder_is_coherent_with_itself(tmp_path: Path, hosts: tuple[str, ...]) -> None:
    folder, tally = folder_of(tmp_path, hosts), Tally()
    said = lead(coherence_steps(folder, str(tmp_path / "work")), hosts)
    measured = judge_coherence(folder, session_of(said), tally)
    assert tally == Tally()
    assert [one.at["after"] for one in measured] == [
        "write",
        "overwrite",
        "append",
        "rename",
        "delete",
    ]
    assert list(tmp_path.iterdir()) == []


def test_a_task_for_the_largest_site_is_one_word_of_a_command() -> None:
    hosts = tuple(f"gpu{number:04d}" for number in range(2000))
    steps = coherence_steps(folder_of(Path("/home"), hosts), "/home/work")
    assert len(packed({"hosts": hosts, "steps": [*steps, *steps, *steps]})) < 64 * 1024


def test_locks_of_one_computer_keep_each_other_out(tmp_path: Path) -> None:
    folder, tally = folder_of(tmp_path), Tally()
    judge_locks(folder, session_of(lead(lock_steps(folder, str(tmp_path / "work")))), tally)
    assert tally == Tally()


def test_many_files_are_counted_and_read(tmp_path: Path) -> None:
    folder, tally = folder_of(tmp_path), Tally()
    said = lead(file_steps(folder, str(tmp_path / "work"), 2000, 10))
    measured = judge_files(folder, session_of(said), tally)
    assert tally == Tally()
    assert [(one.name, one.at["files"]) for one in measured] == [
        ("files_made", 200),
        ("files_read", 200),
        ("files_read", 200),
    ]


def test_a_folder_that_cannot_be_written_names_the_host(tmp_path: Path) -> None:
    folder, tally = folder_of(tmp_path / "none"), Tally()
    said = lead(coherence_steps(folder, str(tmp_path / "none/work")))
    judge_coherence(folder, session_of(said), tally)
    assert tally.wrong == [f"gpu01: cannot make on {tmp_path}/none: No such file or directory"]
    assert tally.unknown == []


def test_what_hangs_is_killed_and_the_next_step_goes_on(tmp_path: Path) -> None:
    common = {"folder": str(tmp_path), "only": [0]}
    steps = [
        step("run", "/p", "hang", HOSTS, argv=["sleep", "600"], **{**common, "timeout_s": 0.2}),
        step("run", "/p", "go", HOSTS, argv=["echo", "x" * 5000], **common),
        step("run", "/p", "none", HOSTS, argv=["no-such-program"], **common),
    ]
    session = session_of(lead(steps))
    assert session.of(step_id("/p", "hang"))["gpu01"]["slow"] == 0.2
    assert session.of(step_id("/p", "go"))["gpu01"]["stdout"] == "x" * 5000 + "\n"
    assert session.of(step_id("/p", "none"))["gpu01"]["missing"] == "no-such-program"


def test_a_host_that_never_begins_is_left_out_and_told(tmp_path: Path) -> None:
    steps = [step("make", "/p", "make", HOSTS, folder=str(tmp_path / "work"), only=[0])]
    starters = [
        {"argv": ["false"], "hosts": ["gpu01"]},
        {"argv": ["env", "SLURMD_NODENAME=gpu02"], "hosts": ["gpu02"]},
    ]
    said = lead(steps, starters=starters)
    assert {"id": "silent", "hosts": ["gpu01"]} in said
    assert session_of(said).of(step_id("/p", "make")).keys() == {"gpu02"}


def test_a_session_ends_when_its_time_is_over(tmp_path: Path) -> None:
    steps = [
        step("run", "/p", f"step-{number}", HOSTS, folder=str(tmp_path), argv=["sleep", "0.3"])
        for number in range(50)
    ]
    said = lead(steps, lasts_s=0.5)
    assert any(one["id"] == "late" for one in said)


def test_where_a_user_may_write_is_found_out(tmp_path: Path) -> None:
    user = getpass.getuser()
    (tmp_path / user).mkdir()
    path = str(tmp_path)
    steps = [step("mounts", path, "mounts", HOSTS, user=user, probe=".probe")]
    said = session_of(lead(steps)).of(step_id(path, "mounts"))["gpu01"]
    assert said["writable"] == f"{path}/{user}"
    assert said["mount"] is None
