"""The scripts of a build are whole: they run where no linter looks."""

import subprocess
from pathlib import Path

import pytest

from hpcsite.image.kinds import STEPS
from hpcsite.image.node import SCRIPTS

FILES = sorted(STEPS.iterdir())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_step_parses_and_says_what_it_does(path: Path) -> None:
    done = subprocess.run(["sh", "-n", str(path)], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    first = path.read_text().splitlines()[:2]
    assert first[0].startswith("# ") or first[1].startswith("# ")
    assert all(len(line) <= 110 for line in path.read_text().splitlines())


def test_what_makes_a_root_bootable_is_there() -> None:
    assert {path.name for path in FILES} >= set(SCRIPTS)
    text = (STEPS / SCRIPTS[0]).read_text()
    assert all(name in text for name in SCRIPTS[1:])
