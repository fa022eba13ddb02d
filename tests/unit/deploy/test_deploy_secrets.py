import stat
from pathlib import Path

import pytest

from hpcsite.deploy.secrets import Change, ensure_secrets, missing_secrets, rotate_munge_key
from hpcsite.errors import CouldNotRunError


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_secrets_are_made_once_and_for_their_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    assert len(ensure_secrets(folder)) == 2
    assert mode(folder) == 0o700
    contents = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert {mode(path) for path in folder.iterdir()} == {0o600}
    assert len(contents["munge.key"]) == 128
    assert contents["slurmdbd_password"].decode().strip().isprintable()
    assert len(contents["slurmdbd_password"]) > 40

    assert ensure_secrets(folder) == []
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == contents


def test_two_sites_have_different_secrets(tmp_path: Path) -> None:
    for name in ("a", "b"):
        ensure_secrets(tmp_path / name)
    for secret in ("munge.key", "slurmdbd_password"):
        assert (tmp_path / "a" / secret).read_bytes() != (tmp_path / "b" / secret).read_bytes()


def test_a_missing_one_is_made_beside_the_other(tmp_path: Path) -> None:
    ensure_secrets(tmp_path / "s")
    key = (tmp_path / "s" / "munge.key").read_bytes()
    (tmp_path / "s" / "slurmdbd_password").unlink()
    assert missing_secrets(tmp_path / "s") == ["slurmdbd_password"]
    assert [path.name for path in ensure_secrets(tmp_path / "s")] == ["slurmdbd_password"]
    assert (tmp_path / "s" / "munge.key").read_bytes() == key


@pytest.mark.parametrize("victim", [".", "munge.key"])
def test_what_others_may_read_is_refused(tmp_path: Path, victim: str) -> None:
    folder = tmp_path / "secrets"
    ensure_secrets(folder)
    (folder / victim).chmod(0o755)
    with pytest.raises(CouldNotRunError) as caught:
        ensure_secrets(folder)
    assert "open to other users" in caught.value.message
    assert caught.value.hint.startswith("chmod 0")


def test_an_empty_secret_is_refused_and_kept(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    ensure_secrets(folder)
    (folder / "munge.key").write_bytes(b"")
    with pytest.raises(CouldNotRunError, match="is empty"):
        ensure_secrets(folder)
    assert (folder / "munge.key").read_bytes() == b""


def test_a_folder_that_cannot_be_made_is_an_error_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CouldNotRunError) as caught:
        ensure_secrets(tmp_path / "file" / "secrets")
    assert caught.value.hint


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_rotation_keeps_the_key_before_and_can_be_undone(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    ensure_secrets(folder)
    before = contents(folder)
    change = rotate_munge_key(folder)
    after = contents(folder)
    assert [path.name for path in change.made] == ["munge.key"]
    assert after["munge.key.old"] == before["munge.key"] != after["munge.key"]
    assert {mode(path) for path in folder.iterdir()} == {0o600}
    change.undo()
    assert contents(folder) == before


def test_rotation_without_a_key_makes_all_and_undo_leaves_none(tmp_path: Path) -> None:
    change = rotate_munge_key(tmp_path / "s")
    assert set(contents(tmp_path / "s")) == {"munge.key", "slurmdbd_password"}
    change.undo()
    assert not (tmp_path / "s").exists()


def test_rotation_that_cannot_make_a_key_leaves_the_old_one(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    ensure_secrets(folder)
    (folder / "slurmdbd_password").write_bytes(b"")
    before = contents(folder)
    with pytest.raises(CouldNotRunError, match="is empty"):
        rotate_munge_key(folder)
    assert before.items() <= contents(folder).items()


def test_undo_removes_what_was_made_and_nothing_else(tmp_path: Path) -> None:
    ensure_secrets(tmp_path / "s")
    (tmp_path / "s" / "munge.key").unlink()
    Change(tuple(ensure_secrets(tmp_path / "s"))).undo()
    assert set(contents(tmp_path / "s")) == {"slurmdbd_password"}
