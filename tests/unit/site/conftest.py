"""The small valid site as fixtures."""

from pathlib import Path

import pytest

from hpcsite.site import load
from tests.unit.site.mini import HOSTS, SITE, SLURM, SiteFolder, resolve


@pytest.fixture
def written(tmp_path: Path) -> SiteFolder:
    """Give the valid site; loading it runs the real ansible-inventory."""
    folder = SiteFolder(tmp_path / "mini")
    folder.write("hosts.yml", HOSTS)
    folder.write("group_vars/all/site.yml", SITE)
    folder.write("group_vars/all/slurm.yml", SLURM)
    return folder


@pytest.fixture
def folder(written: SiteFolder, monkeypatch: pytest.MonkeyPatch) -> SiteFolder:
    """Give the valid site; loading it takes milliseconds."""
    monkeypatch.setattr(load, "read_inventory", resolve)
    return written
