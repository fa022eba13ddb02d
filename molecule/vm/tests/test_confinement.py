"""What Slurm needs to keep jobs to what they were given."""

from testinfra.host import Host

GROUP = "slurm_compute"


def test_the_kernel_has_cgroup_v2_and_its_controllers(host: Host) -> None:
    assert host.mount_point("/sys/fs/cgroup").filesystem == "cgroup2"
    controllers = host.file("/sys/fs/cgroup/cgroup.controllers").content_string.split()
    assert {"cpuset", "cpu", "memory", "pids"} <= set(controllers)


def test_slurm_constrains_cores_memory_and_devices(host: Host) -> None:
    shown = host.check_output("scontrol show config")
    pairs = (line.partition("=") for line in shown.splitlines())
    values = {key.strip(): value.strip() for key, _, value in pairs}
    assert values["ProctrackType"] == "proctrack/cgroup"
    assert set(values["TaskPlugin"].split(",")) == {"task/affinity", "task/cgroup"}
    assert {key: values[key] for key in values if key.startswith("Constrain")} == {
        "ConstrainCores": "yes",
        "ConstrainDevices": "yes",
        "ConstrainRAMSpace": "yes",
        "ConstrainSwapSpace": "yes",
    }


def test_slurmd_may_make_cgroups_for_jobs(host: Host) -> None:
    assert host.check_output("systemctl show --property Delegate --value slurmd") == "yes"
