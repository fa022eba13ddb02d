"""Which images are kept: the newest, those that a lab stands on, and recently used ones."""

import os
import time
from pathlib import Path

import pytest

from hpcsite.image import roots
from hpcsite.image.recipe import Recipe
from hpcsite.image.roots import Image

RECIPE = Recipe("trixie", "amd64", (), (), ())


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPCSITE_CACHE_DIR", str(tmp_path / "cache"))


def make(name: str, *, days_unused: int = 0) -> Image:
    found = Image(roots.images_dir() / name)
    found.root.mkdir(parents=True)
    used = time.time() - days_unused * 86400
    os.utime(found.folder, (used, used))
    return found


def ensure() -> Image:
    return roots.ensure(RECIPE, proxy="", rebuild=False, say=lambda _: None)


def test_the_newest_of_a_recipe_is_used_and_an_older_one_goes() -> None:
    old, new = make(f"{RECIPE.digest()}-1000000001"), make(f"{RECIPE.digest()}-1000000002")
    assert ensure() == new
    assert not old.folder.exists()


def test_an_image_that_a_lab_stands_on_stays_until_the_lab_is_gone(tmp_path: Path) -> None:
    lab = tmp_path / "labs" / "lab"
    lab.mkdir(parents=True)
    old, new = make(f"{RECIPE.digest()}-1000000001"), make(f"{RECIPE.digest()}-1000000002")
    roots.claim(old, lab)
    roots.claim(new, lab)
    roots.release(lab, still_used=[old.root])
    ensure()
    assert old.folder.exists()
    lab.rmdir()
    ensure()
    assert not old.folder.exists()


def test_others_go_when_unused_for_long_and_garbage_at_once(tmp_path: Path) -> None:
    make(f"{RECIPE.digest()}-1000000001")
    recent, stale = make("other-1000000001", days_unused=5), make("old-1000000001", days_unused=40)
    garbage = make(".building-x")
    ensure()
    assert recent.folder.exists()
    assert not stale.folder.exists()
    assert not garbage.folder.exists()
