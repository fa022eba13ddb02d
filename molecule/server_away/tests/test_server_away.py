"""After a node booted without its NFS server: it did not hang, and took jobs when that was back."""

import json
from typing import Any

import pytest
from testinfra.host import Host

from tests.labs import Lab

# The emulated machines of two CPUs in all: a shutdown that gives up two mounts, and a boot.
MOST_SECONDS_TO_BOOT = 240
# The server's own boot is in it.
MOST_SECONDS_TO_JOB = 240


@pytest.fixture(scope="module")
def note(lab: Lab) -> dict[str, Any]:
    found = json.loads((lab.notes / "server_away.json").read_text("utf-8"))
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def node(note: dict[str, Any], lab: Lab) -> Host:
    return lab.host(note["node"])


def test_it_booted_without_the_server(note: dict[str, Any], node: Host) -> None:
    assert float(note["seconds_to_boot"]) <= MOST_SECONDS_TO_BOOT
    assert node.check_output("cat /proc/sys/kernel/random/boot_id") != note["boot"]


def test_it_took_no_jobs_without_its_mounts(note: dict[str, Any]) -> None:
    assert len(note["alone"]) == 3
    assert "active" not in note["alone"]


def test_a_job_ran_soon_after_the_server_was_back(note: dict[str, Any], lab: Lab) -> None:
    assert note["job"] == [note["node"], f"/home/{lab.site.keys.verify_user}"]
    assert float(note["seconds_to_job"]) <= MOST_SECONDS_TO_JOB


def test_nothing_failed(node: Host) -> None:
    assert node.check_output("systemctl --failed --no-legend --plain") == ""
    units = "home.mount shared.mount slurmd.service"
    assert node.check_output(f"systemctl is-active {units}").split() == ["active"] * 3


def test_no_node_is_out(controller: Host) -> None:
    assert controller.check_output("sinfo --noheader --list-reasons") == ""
