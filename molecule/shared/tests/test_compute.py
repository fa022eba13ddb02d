"""A compute node."""

from testinfra.host import Host

from tests.labs import Lab

GROUP = "slurm_compute"


def test_slurmd_runs_now_and_after_a_boot(host: Host) -> None:
    slurmd = host.service("slurmd")
    assert slurmd.is_running
    assert slurmd.is_enabled


def test_slurmd_has_its_configuration_from_the_controller(host: Host, lab: Lab) -> None:
    assert not host.file("/etc/slurm/slurm.conf").exists
    fetched = host.file("/run/slurm/conf/slurm.conf")
    assert f"ClusterName={lab.site.cluster_name}" in fetched.content_string


def test_slurmd_is_started_again_when_it_ends(host: Host) -> None:
    assert host.check_output("systemctl show --property Restart --value slurmd") == "on-failure"


def test_no_passwords_are_on_a_compute_node(host: Host) -> None:
    assert host.run("grep --recursive --quiet StoragePass= /etc /run/slurm").rc == 1


def test_gpus_are_as_many_as_declared(host: Host, lab: Lab) -> None:
    (group,) = lab.site.keys.node_groups.values()
    assert group.gpus
    found = host.check_output("ls /dev | grep --count '^nvidia[0-9]'")
    assert int(found) == group.gpus.count
