"""One deploy a site at a time, and a plan with its deploy as one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hpcsite.deploy.lock import site_lock
from hpcsite.errors import CouldNotRunError
from hpcsite.paths import site_state_dir

OTHER = """
from hpcsite.deploy.lock import site_lock
from hpcsite.errors import CouldNotRunError
try:
    with site_lock("lab"):
        print("locked")
except CouldNotRunError as error:
    print(error)
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPCSITE_STATE_DIR", str(tmp_path))


def other() -> str:
    return subprocess.run(
        [sys.executable, "-c", OTHER], capture_output=True, text=True, check=True
    ).stdout


def test_another_process_hears_who_has_the_lock() -> None:
    with site_lock("lab"):
        assert f"another deploy of the site lab is running: pid {os.getpid()} on " in other()
        with site_lock("another"):
            pass
    assert other() == "locked\n"


def test_lock_is_kept_between_a_plan_and_its_deploy() -> None:
    holder = site_state_dir("lab") / "deploy.holder.json"
    with site_lock("lab"):
        for _ in range(2):
            with site_lock("lab"):
                pass
            assert holder.is_file()
            assert "pid " in other()
    assert not holder.exists()


def test_lock_is_released_when_what_it_guards_fails() -> None:
    with pytest.raises(CouldNotRunError), site_lock("lab"), site_lock("lab"):
        raise CouldNotRunError("broken")
    assert other() == "locked\n"
