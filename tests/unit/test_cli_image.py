"""What `hpcsite image` prints of the images in the cache."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from hpcsite.cli.image import command
from hpcsite.image import manifest, node
from hpcsite.image.kinds import Kind
from hpcsite.image.recipe import Recipe


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HPCSITE_CACHE_DIR", str(tmp_path / "a cache"))
    folder = node.images_dir() / "0123456789abcdef-1796052804"
    folder.mkdir(parents=True)
    (folder / "kernel-release").write_text("6.12.118+deb13-amd64\n")
    (folder / "packages").write_text("bash 5.2-1 amd64\n")
    kind = Kind(("slurm_compute",), builds=False, variables="{}")
    recipe = Recipe("trixie", "amd64", (), (), ())
    manifest.write(recipe, kind, ["gpu01", "gpu02"], folder, built=1796052804)
    return folder


def test_the_list_fits_a_terminal_and_says_whether_a_lab_uses_it(
    image: Path, tmp_path: Path
) -> None:
    lines = CliRunner().invoke(command, ["list"]).stdout.splitlines()
    assert lines[1].split() == [
        *("01234567", "gpu[01-02]", "trixie", "6.12.118+deb13-amd64", "2026-11-30", "15:33", "no"),
    ]
    node.claim(node.NodeImage(image), tmp_path)
    assert CliRunner().invoke(command, ["list"]).stdout.rstrip().endswith("yes")


def test_the_list_as_json_holds_the_manifests(image: Path) -> None:
    found = json.loads(CliRunner().invoke(command, ["list", "--json"]).stdout)
    assert found["schema_version"] == 1
    [entry] = found["images"]
    assert entry["folder"] == str(image)
    assert entry["in_use"] is False
    assert entry["packages"] == [{"name": "bash", "version": "5.2-1", "architecture": "amd64"}]


def test_an_empty_cache_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPCSITE_CACHE_DIR", str(tmp_path))
    done = CliRunner().invoke(command, ["list"])
    assert (done.exit_code, done.stdout) == (0, "")
