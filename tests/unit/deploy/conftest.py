"""Recorded events of real runs, and a small site that lives in memory."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hpcsite.deploy.events import parse_event
from hpcsite.deploy.tally import Tally
from hpcsite.site.model import Host, Site, SiteKeys

EVENTS = Path(__file__).parent / "events"


def recorded(name: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads((EVENTS / f"{name}.json").read_text("utf-8"))
    return events


@pytest.fixture
def tally_of() -> Callable[[str], Tally]:
    def make(name: str) -> Tally:
        tally = Tally()
        for raw in recorded(name):
            for event in parse_event(raw):
                tally.add(event)
        return tally

    return make


@pytest.fixture
def site(tmp_path: Path) -> Site:
    groups = {
        "head": {"slurm_controller", "slurm_dbd", "mariadb"},
        "login": {"slurm_login"},
        "gpu01": {"slurm_compute", "gpu"},
        "gpu02": {"slurm_compute", "gpu"},
        "gpu10": {"slurm_compute", "gpu"},
    }
    return Site(
        path=tmp_path,
        keys=SiteKeys(name="trial"),
        hosts={
            name: Host(name=name, groups=frozenset(member), address="192.0.2.1", vars={})
            for name, member in groups.items()
        },
    )


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "state"
    monkeypatch.setenv("HPCSITE_STATE_DIR", str(folder))
    return folder
