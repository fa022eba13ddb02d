import multiprocessing
import os
import stat
from pathlib import Path

import pytest

from hpcsite.deploy.lock import site_lock
from hpcsite.deploy.rundir import KEPT_RUNS, make_run_dir
from hpcsite.errors import CouldNotRunError


def test_a_run_folder_is_its_owners_only(state: Path) -> None:
    run = make_run_dir("trial")
    assert stat.S_IMODE(run.path.stat().st_mode) == 0o700
    assert run.path.parent == state / "sites" / "trial" / "runs"
    with run.open_log() as log:
        log.write("x")
    assert stat.S_IMODE(run.log.stat().st_mode) == 0o600


def test_latest_points_at_the_newest_run() -> None:
    first, second = make_run_dir("trial"), make_run_dir("trial")
    assert first.path != second.path
    assert (second.path.parent / "latest").resolve() == second.path


def test_old_runs_are_removed_and_killed_ones_tidied(state: Path) -> None:
    runs = state / "sites" / "trial" / "runs"
    for number in range(KEPT_RUNS + 3):
        (runs / f"2020-01-01T00-00-{number:02}Z-deploy").mkdir(parents=True)
    (runs / "2020-01-01T00-00-52Z-deploy" / "work").mkdir()
    (runs / "2020-01-01T00-00-52Z-deploy" / "spare-secrets").mkdir()
    (runs / "2020-01-01T00-00-00Z-verify").mkdir()
    newest = make_run_dir("trial")
    kept = sorted(path.name for path in runs.glob("*-deploy"))
    assert len(kept) == KEPT_RUNS
    assert kept[-1] == newest.path.name
    assert "2020-01-01T00-00-00Z-deploy" not in kept
    assert not list(runs.glob("*/work"))
    assert not list(runs.glob("*/spare-secrets"))
    assert (runs / "2020-01-01T00-00-00Z-verify").is_dir()


def test_a_state_folder_that_cannot_be_written_is_an_error_with_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HPCSITE_STATE_DIR", str(tmp_path / "file" / "state"))
    with pytest.raises(CouldNotRunError) as caught:
        make_run_dir("trial")
    assert "HPCSITE_STATE_DIR" in caught.value.hint
    with pytest.raises(CouldNotRunError), site_lock("trial"):
        pass


def _hold_and_die() -> None:
    with site_lock("trial"):
        os._exit(9)


def test_the_lock_of_a_killed_run_is_taken_over() -> None:
    process = multiprocessing.get_context("spawn").Process(target=_hold_and_die)
    process.start()
    process.join(20)
    assert process.exitcode == 9
    with site_lock("trial"):
        pass
