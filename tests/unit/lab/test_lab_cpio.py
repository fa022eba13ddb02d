"""Archives for the kernel, read back by an independent reader."""

import shutil
import subprocess
from pathlib import Path

import pytest

from hpcsite.lab.qemu.cpio import File, archive, joined

FILES = [File("a/b/one", b"1\n"), File("a/two", b"secret", 0o600), File("empty", b"")]


def members(data: bytes) -> dict[str, tuple[int, bytes]]:
    """Read an archive: name → mode and data."""
    found: dict[str, tuple[int, bytes]] = {}
    at = 0
    while True:
        assert data[at : at + 6] == b"070701"
        assert at % 4 == 0
        fields = [int(data[at + 6 + 8 * n : at + 14 + 8 * n], 16) for n in range(13)]
        name = data[at + 110 : at + 110 + fields[11] - 1].decode()
        start = (at + 110 + fields[11] + 3) // 4 * 4
        if name == "TRAILER!!!":
            return found
        assert (fields[2], fields[3]) == (0, 0), "not root's"
        found[name] = (fields[1], data[start : start + fields[6]])
        at = (start + fields[6] + 3) // 4 * 4


def test_folders_come_before_what_is_in_them_and_modes_are_kept() -> None:
    found = members(archive(FILES, {"a": 0o700}))
    assert found == {
        "a": (0o040700, b""),
        "a/b": (0o040755, b""),
        "a/b/one": (0o100644, b"1\n"),
        "a/two": (0o100600, b"secret"),
        "empty": (0o100644, b""),
    }
    assert list(found)[:3] == ["a", "a/b", "a/b/one"]


def test_equal_files_make_equal_archives() -> None:
    assert archive(FILES, {}) == archive(list(FILES), {})


def test_archives_are_joined_at_multiples_of_four_bytes() -> None:
    first = b"compressed"
    whole = joined(first, archive(FILES, {}))
    assert whole.startswith(first + b"\0\0" + b"070701")
    assert len(whole) % 4 == 0


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x"])
def test_a_path_that_leads_out_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="leads out"):
        archive([File(path, b"")], {})


@pytest.mark.skipif(shutil.which("cpio") is None, reason="no cpio to compare with")
def test_cpio_itself_reads_it(tmp_path: Path) -> None:
    done = subprocess.run(
        ["cpio", "-idm", "--quiet"], input=archive(FILES, {}), cwd=tmp_path, check=True
    )
    assert done.returncode == 0
    assert (tmp_path / "a/b/one").read_text() == "1\n"
    assert (tmp_path / "a/two").stat().st_mode & 0o777 == 0o600
