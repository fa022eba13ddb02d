"""After gpu03 joined: it works, the others were left alone, and so was the job on them."""

import json
from typing import Any

import pytest
from testinfra.host import Host

from tests.labs import Lab

OTHERS = ("gpu01", "gpu02")


@pytest.fixture(scope="module")
def note(lab: Lab) -> dict[str, Any]:
    found = json.loads((lab.notes / "add_node.json").read_text("utf-8"))
    assert isinstance(found, dict)
    return found


def test_only_the_new_node_and_the_controller_were_deployed(note: dict[str, Any]) -> None:
    assert {host["name"] for host in note["deploy"]["hosts"]} == {"gpu03", "head"}
    # The controller learns the node's name, and puts it into Slurm's configuration.
    changes = [each for each in note["deploy"]["changes"] if "head" in each["hosts"]]
    assert {each["layer"] for each in changes} == {"base", "scheduler"}
    (names,) = (each["task"] for each in changes if each["layer"] == "base")
    assert names == "Give every host the names of all hosts"


def test_the_job_on_the_other_nodes_goes_on(
    note: dict[str, Any], lab: Lab, controller: Host
) -> None:
    found = controller.check_output("scontrol --oneliner show job %s", note["job"])
    assert " JobState=RUNNING " in found
    assert " Restarts=0 " in found
    find = f"pgrep --exact sleep --euid {lab.site.keys.verify_user}"
    assert {name: lab.host(name).check_output(find) for name in OTHERS} == note["processes"]


def test_slurmd_of_the_other_nodes_was_not_restarted(note: dict[str, Any], lab: Lab) -> None:
    ask = "systemctl show --property ActiveEnterTimestampMonotonic --value slurmd"
    assert {name: lab.host(name).check_output(ask) for name in OTHERS} == note["slurmd"]


def test_the_other_nodes_know_the_new_one(lab: Lab) -> None:
    assert all(lab.host(name).addr("gpu03").is_resolvable for name in OTHERS)


def test_a_job_runs_on_the_new_node(controller: Host, lab: Lab) -> None:
    command = (
        f"runuser -u {lab.site.keys.verify_user} -- srun --chdir=/tmp --nodelist=gpu03 hostname"
    )
    assert controller.check_output(command) == "gpu03"


def test_a_deploy_of_all_changes_nothing_more(lab: Lab) -> None:
    done = lab.hpcsite("deploy", "--no-verify", "--json")
    assert done.returncode == 0, done.stderr
    changed = {host["name"]: host["changed"] for host in json.loads(done.stdout)["hosts"]}
    assert changed == dict.fromkeys(lab.site.hosts, 0)
