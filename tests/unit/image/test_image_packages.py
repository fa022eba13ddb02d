"""The package cache takes complete packages only, once."""

from pathlib import Path

import pytest

from hpcsite.image import packages


def test_harvest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPCSITE_CACHE_DIR", str(tmp_path / "cache"))
    archives = tmp_path / "archives"
    (archives / "partial").mkdir(parents=True)
    (archives / "partial" / "half_1_amd64.deb").write_text("ha")
    (archives / "new_1%3a2_amd64.deb").write_text("new")
    (archives / "known_1_amd64.deb").write_text("again")
    (archives / "lock").touch()
    packages.packages_dir().mkdir(parents=True)
    (packages.packages_dir() / "known_1_amd64.deb").write_text("first")

    assert packages.harvest(archives) == 1
    assert packages.harvest(archives) == 0
    cached = {path.name: path.read_text() for path in packages.packages_dir().iterdir()}
    assert cached == {"new_1%3a2_amd64.deb": "new", "known_1_amd64.deb": "first"}


def test_nothing_to_harvest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPCSITE_CACHE_DIR", str(tmp_path / "cache"))
    assert packages.harvest(tmp_path / "absent") == 0
