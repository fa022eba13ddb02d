"""Records of labs, and one command at a time."""

import threading
from pathlib import Path

import pytest

from hpcsite.errors import CouldNotRunError
from hpcsite.image import files
from hpcsite.lab import state
from hpcsite.lab.state import Record


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPCSITE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("HPCSITE_CACHE_DIR", str(tmp_path / "cache"))


def test_a_lab_is_found_by_its_inventory() -> None:
    inventory = Path("/srv/inventories/lab")
    dirs = state.lab_dirs("lab", inventory)
    assert state.find_record(inventory) is None
    state.write_record(dirs.record, Record("lab", str(inventory), "10.213.0.0/24"))
    assert state.find_record(inventory) == Record("lab", str(inventory), "10.213.0.0/24")
    assert state.find_record(Path("/srv/other")) is None
    assert dirs.root.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("text", ["", "{", "[]", '{"name": "lab"}'])
def test_half_a_record_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "lab.json"
    path.write_text(text)
    assert state.read_record(path) is None


def test_a_path_that_no_overlay_can_take_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPCSITE_STATE_DIR", "/srv/a,b")
    with pytest.raises(CouldNotRunError, match="a,b"):
        state.require_mountable()


def test_a_second_command_says_that_it_waits_and_then_goes_on() -> None:
    said: list[str] = []
    waiting, entered = threading.Event(), threading.Event()

    def say(message: str) -> None:
        said.append(message)
        waiting.set()

    def second() -> None:
        with files.lock("lab-x", say):
            entered.set()

    with files.lock("lab-x"):
        thread = threading.Thread(target=second)
        thread.start()
        assert waiting.wait(10)
        assert not entered.is_set()
    assert entered.wait(10)
    thread.join()
    assert said == ["waiting for another hpcsite command (lab-x)"]


def test_a_file_in_place_of_a_link_leaves_its_target_alone(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    files.write_atomically(link, "new", mode=0o600)
    assert target.read_text() == "old"
    assert link.read_text() == "new"
    assert link.stat().st_mode & 0o777 == 0o600
