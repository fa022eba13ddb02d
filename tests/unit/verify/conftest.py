"""Checks are run against a fake Slurm, in a time that passes only when a check waits."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hpcsite.site.model import Site
from hpcsite.verify import jobs
from hpcsite.verify.context import Context
from hpcsite.verify.engine import Check, execute
from hpcsite.verify.results import Result
from tests.unit.verify.fakeslurm import FakeSlurm, context_for


class Clock:
    """Time that passes only when a check waits."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(jobs, "time", clock)
    monkeypatch.setattr(
        Context, "pause", lambda _self, seconds: setattr(clock, "now", clock.now + seconds + 0.1)
    )
    return clock


@pytest.fixture
def run_check(tmp_path: Path) -> Callable[..., Result]:
    """Run one check against a fake Slurm; what the real engine makes of it."""

    def run(
        check: Check, slurm: FakeSlurm, site: Site | None = None, **options: str | float
    ) -> Result:
        return execute(check, context_for(tmp_path, slurm, site, **options))

    return run
