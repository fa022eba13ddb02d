"""After all machines were rebooted at once: all is back, in order, and a job ran soon."""

import json
from typing import Any

import pytest
from testinfra.host import Host

from tests.labs import Lab

GROUP = "all"
# The emulated machines of two CPUs in all; on hardware the firmware alone may take longer.
MOST_SECONDS_TO_JOB = 180


@pytest.fixture(scope="module")
def note(lab: Lab) -> dict[str, Any]:
    found = json.loads((lab.notes / "reboot.json").read_text("utf-8"))
    assert isinstance(found, dict)
    return found


def test_a_job_ran_soon(note: dict[str, Any], lab: Lab) -> None:
    assert sorted(note["job"]) == [node.name for node in lab.site.in_group("slurm_compute")]
    assert float(note["seconds_to_job"]) <= MOST_SECONDS_TO_JOB


def test_it_was_rebooted_and_nothing_failed(host: Host, note: dict[str, Any]) -> None:
    name = host.backend.get_hostname()
    assert host.check_output("cat /proc/sys/kernel/random/boot_id") != note["boots"][name]
    host.run("timeout 90 systemctl is-system-running --wait")
    assert host.check_output("systemctl --failed --no-legend --plain") == ""
    assert host.check_output("systemctl is-system-running") == "running"


@pytest.mark.parametrize(
    "units",
    [
        ["hpcsite-soft-roce.service", "slurmd.service"],
        ["munge.service", "slurmd.service"],
        ["home.mount", "slurmd.service"],
        ["shared.mount", "slurmd.service"],
    ],
    ids="-".join,
)
def test_a_node_takes_jobs_when_it_has_all_that_they_need(lab: Lab, units: list[str]) -> None:
    for node in lab.site.in_group("slurm_compute"):
        assert _came_up(lab.host(node.name), units) == units


@pytest.mark.parametrize(
    "units",
    [
        ["munge.service", "slurmctld.service"],
        ["mariadb.service", "slurmdbd.service"],
    ],
    ids="-".join,
)
def test_the_controller_comes_up_in_order(controller: Host, units: list[str]) -> None:
    assert _came_up(controller, units) == units


def test_no_node_is_out(controller: Host) -> None:
    assert controller.check_output("sinfo --noheader --list-reasons") == ""


def _came_up(host: Host, units: list[str]) -> list[str]:
    """The units in the order in which they became active; those that are not are left out."""
    shown = host.check_output(
        "systemctl show --property Id,ActiveState,ActiveEnterTimestampMonotonic " + " ".join(units)
    )
    found = []
    for block in shown.split("\n\n"):
        unit = dict(line.split("=", 1) for line in block.splitlines())
        if unit["ActiveState"] == "active":
            found.append((int(unit["ActiveEnterTimestampMonotonic"]), unit["Id"]))
    return [name for _, name in sorted(found)]
