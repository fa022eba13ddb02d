"""`hpcsite init --discover` against real machines: nothing is changed there, the site is valid."""

import os
import subprocess
from pathlib import Path

import pytest

from hpcsite.site.load import load_site
from tests.integration.conftest import HPCSITE, LabSite

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(os.geteuid() != 0, reason="the lab needs root"),
]

# Files that a program may have left behind; what the kernel and daemons write is not among them.
LISTING = (
    "find /etc /usr /opt /srv /root /home /tmp /var/lib/dpkg -xdev -printf '%p %s %T@\\n' | sort"
)


def options(lab: LabSite) -> str:
    keys = lab.inventory / ".lab" / "ssh"
    return (
        f"-F none -o IdentitiesOnly=yes -i '{keys / 'id_ed25519'}' "
        f"""-o 'UserKnownHostsFile="{keys / "known_hosts"}"'"""
    )


def init(lab: LabSite, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HPCSITE, "init", folder, "--discover", *arguments, "--ssh-args", options(lab)],
        env=lab.env,
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_machines_of_a_lab_become_a_site(lab_site: LabSite, tmp_path: Path) -> None:
    before = {node: lab_site.ssh(node, LISTING) for node in ("head", "gpu01")}
    folder = tmp_path / "found site"
    net = lab_site.network
    hosts = (f"{net}.[10-11]", f"{net}.[21-22]")
    done = init(lab_site, folder, *hosts, "--login", "login", "--nfs-server", "head")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{folder}\n"
    assert "asking 4 hosts" in done.stderr
    # The machines share this computer, so none of them is an odd one.
    assert "differs" not in done.stderr
    site = load_site(folder)
    assert site.warnings == ()
    assert {host.name: host.address for host in site.hosts.values()} == {
        "head": f"{net}.10",
        "login": f"{net}.11",
        "gpu01": f"{net}.21",
        "gpu02": f"{net}.22",
    }
    assert "slurm_controller" in site.hosts["head"].groups
    assert "slurm_login" in site.hosts["login"].groups
    group = site.keys.node_groups["gpu"]
    assert group.hardware is not None
    assert group.hardware.cpus == int(lab_site.ssh("gpu01", "nproc"))
    total = int(lab_site.ssh("gpu01", "awk '/^MemTotal/ {print $2}' /proc/meminfo"))
    assert group.hardware.memory_mib == total // 1024
    assert {node: lab_site.ssh(node, LISTING) for node in before} == before
    # What reached the machines is what the inventory says: Ansible reaches them too.
    ping = subprocess.run(
        [HPCSITE.with_name("ansible"), "all", "-i", folder, "-m", "ansible.builtin.ping", "-o"],
        env={**os.environ, "ANSIBLE_HOST_KEY_CHECKING": "True"},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert ping.stdout.count('"pong"') == 4, ping.stdout + ping.stderr


def test_machine_that_is_not_there(lab_site: LabSite, tmp_path: Path) -> None:
    net = lab_site.network
    hosts = (f"{net}.10", f"{net}.[21,99]")
    done = init(lab_site, tmp_path / "site", *hosts)
    assert done.returncode == 4, done.stderr
    assert f"1 of 3 hosts did not answer:\n  {net}.99: " in done.stderr
    assert not (tmp_path / "site").exists()
    done = init(lab_site, tmp_path / "site", *hosts, "--skip-unreachable")
    assert done.returncode == 0, done.stderr
    assert set(load_site(tmp_path / "site").hosts) == {"head", "gpu01"}


def test_unknown_host_key_is_not_accepted(lab_site: LabSite, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    known.write_text("")
    strict = options(lab_site).replace(str(lab_site.inventory / ".lab/ssh/known_hosts"), str(known))
    done = subprocess.run(
        [
            *(HPCSITE, "init", tmp_path / "site", "--discover", f"{lab_site.network}.10"),
            *("--ssh-args", strict),
        ],
        env=lab_site.env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4, done.stderr
    assert "Host key verification failed" in done.stderr
    assert known.read_text() == ""
    assert not (tmp_path / "site").exists()
