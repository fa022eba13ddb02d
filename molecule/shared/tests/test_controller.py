"""The controller, its accounting and its database."""

import pytest
from testinfra.host import Host

from tests.labs import Lab

GROUP = "slurm_controller"


@pytest.mark.parametrize("name", ["mariadb", "slurmdbd", "slurmctld"])
def test_a_daemon_runs_now_and_after_a_boot(host: Host, name: str) -> None:
    service = host.service(name)
    assert service.is_running
    assert service.is_enabled


def test_slurm_listens_to_the_site_and_the_database_to_its_host_only(host: Host) -> None:
    listening = host.socket.get_listening_sockets()
    ports = {each.rpartition(":")[2] for each in listening}
    assert {"6817", "6819"} <= ports
    assert [each for each in listening if each.endswith(":3306")] == ["tcp://127.0.0.1:3306"]


def test_the_password_of_the_database_is_slurms_alone(host: Host, lab: Lab) -> None:
    password = (lab.folder / "secrets" / "slurmdbd_password").read_text("utf-8").strip()
    file = host.file("/etc/slurm/slurmdbd.conf")
    assert (file.user, file.mode) == ("slurm", 0o600)
    assert f"StoragePass={password}" in file.content_string
    assert host.run("grep --recursive --files-with-matches %s /etc", password).stdout.split() == [
        "/etc/slurm/slurmdbd.conf"
    ]


def test_slurmctlds_state_is_its_own(host: Host) -> None:
    folder = host.file("/var/spool/slurmctld")
    assert (folder.user, folder.mode) == ("slurm", 0o700)


def test_accounting_knows_the_cluster(host: Host, lab: Lab) -> None:
    clusters = host.check_output("sacctmgr --noheader --parsable2 show cluster format=cluster")
    assert clusters.split() == [lab.site.cluster_name]


def test_all_nodes_take_jobs(host: Host, lab: Lab) -> None:
    found = host.check_output("sinfo --noheader --Node --format='%%N %%T'").splitlines()
    assert set(found) == {f"{node.name} idle" for node in lab.site.in_group("slurm_compute")}
