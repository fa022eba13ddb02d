"""Keys are written in the users' own folders, whatever users make of these meanwhile."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.unit.roles.test_modules import load, run_module

ssh_keys = load("modules", "ssh_keys")
KEY = "ssh-ed25519 AAAA alice"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "alice"
    home.mkdir()
    return home


def user(home: Path, *keys: str, **other: Any) -> dict[str, Any]:  # noqa: ANN401 - any option
    entry = {"name": home.name, "path": str(home), "uid": os.getuid(), "gid": os.getgid()}
    return entry | {"ssh_keys": list(keys)} | other


def keep(entry: dict[str, Any], *, write: bool = True) -> dict[str, str] | None:
    diff: dict[str, str] | None = ssh_keys.keep_keys(entry, write=write)
    return diff


def modes(home: Path) -> list[int]:
    return [(home / name).lstat().st_mode & 0o7777 for name in (".ssh", ".ssh/authorized_keys")]


def test_keys_are_written_once(home: Path) -> None:
    diff = keep(user(home, KEY, f"{KEY} 2"))
    assert diff is not None
    assert (diff["before"], diff["after"]) == ("", f"{KEY}\n{KEY} 2\n")
    assert (home / ".ssh/authorized_keys").read_text() == f"{KEY}\n{KEY} 2\n"
    assert modes(home) == [0o700, 0o600]
    assert [path.name for path in (home / ".ssh").iterdir()] == ["authorized_keys"]
    assert keep(user(home, KEY, f"{KEY} 2")) is None


def test_no_keys_make_an_empty_file(home: Path) -> None:
    keep(user(home, KEY))
    diff = keep(user(home))
    assert diff is not None
    assert diff["before"] == f"{KEY}\n"
    assert (home / ".ssh/authorized_keys").read_bytes() == b""
    assert keep(user(home)) is None


@pytest.mark.parametrize("path", [".ssh", ".ssh/authorized_keys"])
def test_modes_are_mended(home: Path, path: str) -> None:
    keep(user(home, KEY))
    (home / path).chmod(0o777)
    assert keep(user(home, KEY), write=False) is not None
    assert (home / path).stat().st_mode & 0o777 == 0o777
    assert keep(user(home, KEY)) is not None
    assert modes(home) == [0o700, 0o600]


def test_what_a_killed_run_left_is_replaced(home: Path) -> None:
    (home / ".ssh").mkdir()
    (home / ".ssh" / ssh_keys.DRAFT).write_text("half")
    keep(user(home, KEY))
    assert [path.name for path in (home / ".ssh").iterdir()] == ["authorized_keys"]


def test_a_check_changes_nothing(home: Path) -> None:
    assert keep(user(home, KEY), write=False) is not None
    assert list(home.iterdir()) == []
    # Nor does it mind that the home folder is not yet made.
    assert keep(user(home / "missing", KEY), write=False) is not None


def test_a_link_in_the_place_of_a_folder_is_refused(home: Path, tmp_path: Path) -> None:
    """Root's keys, with the link in place before the task or put there in the middle of it."""
    root = tmp_path / "root/.ssh"
    root.mkdir(parents=True)
    for target in (root, Path("/"), tmp_path / "missing"):
        (home / ".ssh").symlink_to(target)
        with pytest.raises(ssh_keys.LeftOutError, match=r"alice/\.ssh is a link"):
            keep(user(home, KEY))
        (home / ".ssh").unlink()
    (tmp_path / "link").symlink_to(home)
    with pytest.raises(ssh_keys.LeftOutError, match="link is a link"):
        keep(user(tmp_path / "link", KEY))
    assert list(root.iterdir()) == []
    assert list(home.iterdir()) == []


def test_a_folder_that_is_swapped_after_it_was_opened_is_not_written_to(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    kept = ssh_keys.keep_folder

    def swap(*arguments: Any, **named: Any) -> bool:  # noqa: ANN401 - passed on
        (home / ".ssh").rename(home / "moved")
        (home / ".ssh").symlink_to(root)
        return bool(kept(*arguments, **named))

    monkeypatch.setattr(ssh_keys, "keep_folder", swap)
    keep(user(home, KEY))
    assert list(root.iterdir()) == []
    assert (home / "moved/authorized_keys").read_text() == f"{KEY}\n"


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe"])
def test_the_file_is_replaced_and_never_written_through(
    home: Path, tmp_path: Path, kind: str
) -> None:
    victim, file = tmp_path / "victim", home / ".ssh/authorized_keys"
    victim.write_text("secret")
    victim.chmod(0o644)
    file.parent.mkdir()
    if kind == "link":
        file.symlink_to(victim)
    elif kind == "hard link":
        file.hardlink_to(victim)
    else:
        os.mkfifo(file)
    keep(user(home, KEY))
    assert (victim.read_text(), victim.stat().st_mode & 0o777) == ("secret", 0o644)
    assert file.read_text() == f"{KEY}\n"
    assert modes(home) == [0o700, 0o600]


def test_folders_of_others_are_refused(home: Path) -> None:
    foreign = user(home, KEY, uid=os.getuid() + 1)
    with pytest.raises(ssh_keys.LeftOutError, match=rf"alice belongs to uid {os.getuid()}, not"):
        keep(foreign)
    assert list(home.iterdir()) == []


def test_only_an_empty_folder_of_root_s_is_given_away(home: Path) -> None:
    """A user may move a folder of root's, whose mode protects what is in it, to ~/.ssh."""
    folder = home / ".ssh"
    folder.mkdir()
    (folder / "secret").touch()
    descriptor = os.open(folder, os.O_RDONLY)
    other = user(home, KEY, uid=os.getuid() + 1)
    try:
        with pytest.raises(ssh_keys.LeftOutError, match="belongs to uid"):
            ssh_keys.keep_folder(descriptor, "x", other, write=False)
        (folder / "secret").unlink()
        assert ssh_keys.keep_folder(descriptor, "x", other, write=False)
    finally:
        os.close(descriptor)


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files to others")
def test_owners_are_the_user_and_the_group(home: Path) -> None:
    os.chown(home, 2001, 2001)
    keep(user(home, KEY, uid=2001, gid=2000))
    for path in (home / ".ssh", home / ".ssh/authorized_keys"):
        assert (path.stat().st_uid, path.stat().st_gid) == (2001, 2000)
    assert home.stat().st_gid == 2001
    assert keep(user(home, KEY, uid=2001, gid=2000)) is None


def test_one_user_keeps_no_other_from_the_keys(home: Path, tmp_path: Path) -> None:
    (tmp_path / "bob").mkdir()
    (tmp_path / "bob/.ssh").symlink_to("/")
    (tmp_path / "dave/.ssh/authorized_keys").mkdir(parents=True)
    names = ("bob", "missing", "dave")
    users = [*(user(tmp_path / name, KEY) for name in names), user(home, KEY)]
    result = run_module("ssh_keys", users=users)
    assert result["left_out"] == [
        f"bob: {tmp_path}/bob/.ssh is a link, or no folder",
        f"missing: {tmp_path}/missing: No such file or directory",
        f"dave: {tmp_path}/dave: Is a directory",
    ]
    assert result["results"] == [{"item": "alice", "changed": True}]
    assert (home / ".ssh/authorized_keys").read_text() == f"{KEY}\n"
    assert run_module("ssh_keys", users=users[-1:])["changed"] is False
    # A check may be before the user's home folder, not before a link's removal.
    checked = run_module("ssh_keys", users=users[:2], _ansible_check_mode=True)
    assert checked["left_out"] == result["left_out"][:1]
