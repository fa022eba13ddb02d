"""`hpcsite render`, as a user calls it."""

import sys
from pathlib import Path

import pytest

from hpcsite import cli
from hpcsite.errors import ExitCode
from hpcsite.paths import content_dir

VMLAB = content_dir() / "inventory" / "vmlab"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["hpcsite", "render", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


def test_the_files_are_written_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run(monkeypatch, str(VMLAB), "--out", str(out)) == ExitCode.OK
    named = {Path(line) for line in capsys.readouterr().out.splitlines()}
    assert named == set(out.iterdir())
    assert {"slurm.conf", "gres.conf", "hosts", "exports.head"} <= {path.name for path in named}


def test_a_wrong_site_ends_with_3_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site/hosts.yml").write_text("all:\n  hosts:\n    a: {site_nonsense: 1}\n")
    out = tmp_path / "out"
    assert run(monkeypatch, str(tmp_path / "site"), "--out", str(out)) == ExitCode.INVALID_SITE
    assert "site_nonsense" in capsys.readouterr().err
    assert not out.exists()


def test_without_a_folder_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, str(VMLAB)) == ExitCode.USAGE
