"""An installed hpcsite, in a virtualenv of its own, does what a checkout does.

The virtualenv holds what the wheel asks for and nothing else, so a dependency or a data file that
only a checkout has shows here.
"""

import json
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.integration.conftest import LabSite

pytestmark = pytest.mark.lab

ROOT = Path(__file__).resolve().parents[2]


def constraints(folder: Path) -> Path:
    """Write the locked versions, without hashes: pip would demand one of the wheel too."""
    lock = (ROOT / "requirements" / "dev.lock").read_text("utf-8")
    pins = re.findall(r"^([\w.-]+==[\w.!+-]+)", lock, flags=re.MULTILINE)
    assert pins
    file = folder / "constraints.txt"
    file.write_text("\n".join(pins) + "\n", "utf-8")
    return file


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel, install it; returns the path of its `hpcsite`."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation"]
    subprocess.run([*build, "--outdir", str(folder), str(ROOT)], check=True, capture_output=True)
    (wheel,) = folder.glob("hpcsite-*.whl")
    venv.create(folder / "venv", with_pip=True)
    subprocess.run(
        [
            *(str(folder / "venv/bin/pip"), "install", "--quiet"),
            *("--constraint", str(constraints(folder)), str(wheel)),
        ],
        check=True,
        capture_output=True,
        cwd=folder,
    )
    return folder / "venv/bin/hpcsite"


def run(program: Path, *arguments: str, site: LabSite, cwd: Path) -> str:
    # Nothing of the checkout's own virtualenv may help: its bin folder is not on PATH.
    environment = {**site.env, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    done = subprocess.run(
        [str(program), *arguments],
        env=environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{arguments}: {done.stdout}\n{done.stderr}"
    return done.stdout


def test_an_installed_hpcsite_writes_and_checks_a_site(
    installed: Path, lab_site: LabSite, tmp_path: Path
) -> None:
    machines = ("--head", "head=10.0.0.10", "--nodes", "n[1-2]", "--first-address", "10.0.0.21")
    run(installed, "init", "mine", *machines, site=lab_site, cwd=tmp_path)
    assert "valid" in run(installed, "validate", "mine", site=lab_site, cwd=tmp_path)
    run(installed, "init", "lab", "--lab", site=lab_site, cwd=tmp_path)
    assert "valid" in run(installed, "validate", "lab", site=lab_site, cwd=tmp_path)


def test_an_installed_hpcsite_deploys_and_verifies(
    installed: Path, deployed_site: LabSite, tmp_path: Path
) -> None:
    inventory = str(deployed_site.inventory)
    outcome = json.loads(
        run(installed, "deploy", inventory, "--json", site=deployed_site, cwd=tmp_path)
    )
    # Deployed by the checkout before: the installed roles must want the very same site.
    assert {host["name"]: host["changed"] for host in outcome["hosts"]} == dict.fromkeys(
        ("head", "login", "gpu01", "gpu02"), 0
    )
    verified = json.loads(run(installed, "verify", "--json", site=deployed_site, cwd=tmp_path))
    assert {result["status"] for result in verified["results"]} <= {"PASS", "SKIP"}
    assert any(result["status"] == "PASS" for result in verified["results"])
