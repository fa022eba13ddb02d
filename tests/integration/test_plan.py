"""Plans of a site of virtual machines: fresh, deployed, changed. A lab of their own.

The tests build on each other, in the order of the file.
"""

import base64
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import LabSite

pytestmark = pytest.mark.lab

NODES = ("head", "login", "gpu01", "gpu02")
GPU_NODES = ["gpu01", "gpu02"]
# What is in these folders, and when it changed. Slurm writes its own state all the time.
FILES = (
    "find /etc /home /root /usr/local /var/lib/hpcsite /var/spool /var/lib/munge -xdev "
    r"\( -path /var/spool/slurmctld -o -path /var/spool/slurmd \) -prune -o "
    r"-printf '%p %y %m %u %g %s %T@ %C@\n' 2>/dev/null | sort"
)
CHECKSUMS = "find /etc -xdev -type f -exec sha256sum {} + | sort -k 2"
DAEMONS = (
    "systemctl show munge mariadb slurmdbd slurmctld slurmd sackd ssh cron "
    "-p Id,ActiveState,UnitFileState,MainPID,ExecMainStartTimestampMonotonic"
)
STARTED = "systemctl show slurmd -p InvocationID"
PACKAGES = "dpkg-query --show --showformat='${Package} ${Version} ${db:Status-Status}\\n'"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabSite]:
    if os.geteuid() != 0:
        pytest.skip("the lab needs root")
    site = LabSite(tmp_path_factory.mktemp("plan"), name="plantest", network="10.242.0")
    try:
        site.ok("lab up")
        yield site
    finally:
        site.run("lab down")


def planned(site: LabSite, *options: str, expect: int = 0) -> dict[str, Any]:
    done = site.run("plan", "--json", *options)
    assert done.returncode == expect, f"{done.stdout}\n{done.stderr}"
    plan = json.loads(done.stdout)
    assert isinstance(plan, dict)
    return plan


def machines(site: LabSite) -> dict[str, str]:
    return {
        node: site.ssh(node, "; ".join((FILES, CHECKSUMS, DAEMONS, PACKAGES))) for node in NODES
    }


def here(folder: Path) -> dict[str, str]:
    """Every file below a folder with its content, less the records of plans."""
    return {
        str(file): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not any(part.endswith("-plan") for part in file.parts)
    }


def counts(plan: dict[str, Any]) -> dict[str, int]:
    """Kinds of which there is something."""
    return {kind: number for kind, number in plan["summary"].items() if number}


def start_job(site: LabSite) -> str:
    job = site.as_user(
        "sbatch --parsable --nodes=2 --time=10 --output=/dev/null --wrap='sleep 500'"
    )
    site.ssh(
        "head", f"for n in $(seq 60); do {running(job)} && break; sleep 1; done; {running(job)}"
    )
    return job


def running(job: str) -> str:
    return f'test "$(squeue --noheader --jobs={job} --format=%T)" = RUNNING'


def test_a_plan_of_fresh_machines_names_packages_and_says_what_is_unknown(site: LabSite) -> None:
    before, folder = machines(site), here(site.inventory)
    plan = planned(site)
    assert machines(site) == before
    assert here(site.inventory) == folder
    assert not (site.inventory / "secrets").exists()
    assert not list(site.state.rglob("munge.key"))
    assert not (site.state / "last-site.json").exists()
    installed = {name for item in plan["packages"] for name in item["packages"]}
    assert {"munge", "slurmctld", "slurmd"} <= installed
    assert {host for item in plan["packages"] for host in item["hosts"]} == set(NODES)
    waiting = {host for item in plan["unknown"] for host in item["hosts"]}
    assert waiting == set(NODES)
    assert "the packages are installed" in {item["until"] for item in plan["unknown"]}
    assert plan["jobs_at_risk"] == []


def test_a_plan_after_the_deploy_says_no_changes(site: LabSite) -> None:
    site.deploy()
    before = machines(site)
    secrets, records = here(site.inventory), here(site.state / "sites")
    assert site.ok("plan") == "plan of site plantest: no changes\n"
    assert machines(site) == before
    assert here(site.inventory) == secrets
    assert here(site.state / "sites") == records
    assert not list((site.state / "sites").rglob("*holder*"))
    latest = site.state / "sites" / "plantest" / "runs" / "latest"
    assert latest.resolve().name.endswith("-deploy")


def test_a_partition_changes_slurm_conf_and_restarts_nothing(site: LabSite) -> None:
    job = start_job(site)
    site.edit("group_vars/all/slurm.yml", "max_time: 1-00:00:00", "max_time: 2-00:00:00")
    before = machines(site)
    started = {node: site.ssh(node, STARTED) for node in GPU_NODES}
    file = site.folder / "partition.plan"
    plan = planned(site, "--out", str(file))
    assert machines(site) == before
    assert counts(plan) == {"files": 1, "daemons": 1}
    (changed,), (daemon,) = plan["files"], plan["daemons"]
    assert (changed["path"], changed["nodes"]) == ("/etc/slurm/slurm.conf", "head")
    lines = [line for line in changed["diff"].splitlines() if line.startswith(("+", "-"))]
    assert len(lines) == 2
    assert "MaxTime=1-00:00:00" in lines[0]
    assert "MaxTime=2-00:00:00" in lines[1]
    assert (daemon["daemon"], daemon["action"], daemon["nodes"]) == (
        *("slurmctld", "reconfigure", "head"),
    )
    assert daemon["because"] == ["/etc/slurm/slurm.conf"]
    outcome = site.deploy("--plan", str(file))
    assert outcome["status"] == "ok"
    assert {change["task"] for change in outcome["changes"]} == {
        "Write the configuration",
        "Have slurmctld and the nodes take the configuration over",
        "Note what slurmctld runs on",
    }
    site.ssh("head", running(job))
    # Slurm's own reconfigure may replace slurmd's process; a restart of its unit shows here.
    assert {node: site.ssh(node, STARTED) for node in GPU_NODES} == started
    assert site.ok("plan") == "plan of site plantest: no changes\n"


def test_another_driver_drains_and_reboots_the_gpu_nodes_and_names_their_jobs(
    site: LabSite,
) -> None:
    (job,) = site.ssh("head", "squeue --noheader --format=%i").split()
    file = "group_vars/all/slurm.yml"
    pins = '\nsite_software:\n  nvidia_driver: "550.90.07"\n\nsite_partitions:\n'
    site.edit(file, "\nsite_partitions:\n", pins)
    plan = planned(site)
    assert counts(plan) == {"nodes": 2, "jobs_at_risk": 1}
    (need,), (risk,) = plan["nodes"], plan["jobs_at_risk"]
    assert (need["needs"], need["hosts"]) == (["drain", "reboot"], GPU_NODES)
    assert need["because"] == ["NVIDIA driver none → 550.90.07"]
    assert (risk["id"], risk["user"], risk["nodes"]) == (job, "alice", "gpu[01-02]")
    site.edit(file, pins, "\nsite_partitions:\n")
    site.ssh("head", f"scancel {job}")


def test_a_stored_plan_is_refused_when_the_description_or_a_machine_has_moved(
    site: LabSite,
) -> None:
    file = site.folder / "stored.plan"
    planned(site, "--out", str(file))
    site.edit("group_vars/all/site.yml", "uid: 2002", "uid: 2003")
    refused = site.run("deploy", "--no-verify", "--plan", str(file))
    assert refused.returncode == 1
    assert "the description has changed: site_users" in refused.stderr
    assert "hpcsite plan" in refused.stderr
    assert site.ssh("gpu01", "id -u bob") == "2002"
    site.edit("group_vars/all/site.yml", "uid: 2003", "uid: 2002")
    site.ssh("gpu01", "echo 192.0.2.1 stranger >> /etc/hosts")
    refused = site.run("deploy", "--no-verify", "--plan", str(file))
    assert refused.returncode == 1
    assert "gpu01: not as planned: /etc/hosts" in refused.stderr
    assert "stranger" in site.ssh("gpu01", "cat /etc/hosts")


def test_no_secret_is_shown_stored_or_logged(site: LabSite) -> None:
    """The password's file and the key's change, and all that a plan writes is searched."""
    site.ssh("head", "echo '# odd' >> /etc/slurm/slurmdbd.conf")
    site.ssh("gpu02", "head -c 128 /dev/urandom > /etc/munge/munge.key")
    file = site.folder / "secret.plan"
    shown = site.run("plan", "--out", str(file))
    as_json = site.run("plan", "--json")
    assert (shown.returncode, as_json.returncode) == (0, 0), shown.stderr + as_json.stderr
    plan = json.loads(as_json.stdout)
    notes = {item["path"]: item["note"] for item in plan["files"]}
    assert "secret" in notes["/etc/slurm/slurmdbd.conf"]
    assert "secret" in notes["/etc/munge/munge.key"]
    restarts = {(item["daemon"], item["nodes"], *item["because"]) for item in plan["daemons"]}
    assert ("slurmdbd", "head", "/etc/slurm/slurmdbd.conf") in restarts
    assert ("munge", "gpu02", "/etc/munge/munge.key") in restarts
    key = (site.inventory / "secrets" / "munge.key").read_bytes()
    password = (site.inventory / "secrets" / "slurmdbd_password").read_bytes().strip()
    kept = [text.encode() for text in (shown.stdout, shown.stderr, as_json.stdout, as_json.stderr)]
    kept += [
        path.read_bytes() for path in (file, *(site.state / "sites").rglob("*")) if path.is_file()
    ]
    for needle in (key, base64.b64encode(key), key.hex().encode(), password):
        assert not [text[:80] for text in kept if needle in text]
    site.deploy()
    assert site.ok("plan") == "plan of site plantest: no changes\n"


def test_a_host_that_cannot_be_reached_leaves_a_hole_that_is_said(site: LabSite) -> None:
    address = f"ansible_host: {site.network}.22"
    site.edit("hosts.yml", address, f"{address}\n              ansible_port: 9")
    file = site.folder / "hole.plan"
    done = site.run("plan", "--out", str(file))
    assert done.returncode == 4, done.stdout + done.stderr
    assert "NOT WHOLE: nothing is known of gpu02" in done.stdout
    assert not file.exists()
    site.edit("hosts.yml", f"{address}\n              ansible_port: 9", address)
