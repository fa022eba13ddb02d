"""What the kernel gives to machines, in words."""

from hpcsite.lab.cgroups import in_words, unified_path


def test_the_unified_path_is_the_line_without_controllers() -> None:
    assert unified_path("4:memory:/x\n1:name=systemd:/y\n0::/payload/init.scope\n") == (
        "/payload/init.scope"
    )
    assert unified_path("4:memory:/x\n") is None


def test_words_say_what_slurm_uses() -> None:
    assert in_words([], v1=True) == (
        "no cgroup v2 controllers cpu, cpuset, memory (host runs cgroup v1): "
        "Slurm here uses proctrack/linuxproc"
    )
    assert in_words(["cpuset", "cpu", "memory", "pids"], v1=False) == (
        "cgroup v2 controllers: cpuset cpu memory pids; Slurm here uses proctrack/cgroup"
    )
    assert in_words(["pids", "cpuset"], v1=False) == (
        "no cgroup v2 controllers cpu, memory (the host hands them on to nobody): "
        "Slurm here uses proctrack/linuxproc"
    )
