"""The preflight role says every reason for which a host is left out."""

import fcntl
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hpcsite.deploy.secrets import sha256_of
from hpcsite.paths import content_dir
from hpcsite.site.ansible import ansible_environment

SOUND = {
    "uid": 0,
    "systemd": True,
    "hostname": "localhost",
    "memory_mib": 4096,
    "free_mib": {"/": 9999, "/var": 9999},
    "time_offset_s": 0.3,
    "package_lock_holder": "",
    "package_error": "",
    "packages_pending": False,
    "munge_key_sha256": "",
    "slurm_configured": False,
    "cgroup_problem": "",
}
TRIXIE = {"distribution": "Debian", "distribution_version": "13.1"}


@pytest.fixture(scope="module")
def probe() -> ModuleType:
    path = content_dir() / "roles" / "preflight" / "library" / "preflight_probe.py"
    spec = importlib.util.spec_from_file_location("preflight_probe", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def preflight(
    folder: Path,
    facts: dict[str, Any],
    *,
    controller: bool = False,
    group: str = "slurm_login",
    keys: dict[str, str] | None = None,
    **seen: object,
) -> str:
    """Run the role's checks on what a host would have answered; returns Ansible's output."""
    facts = facts | {"distribution_major_version": facts["distribution_version"].split(".")[0]}
    variables = {
        "ansible_connection": "local",
        "ansible_become": False,
        "ansible_python_interpreter": sys.executable,
        "__preflight_probe": SOUND | seen,
        "preflight_munge_key_sha256": "the site's",
        "ansible_facts": facts,
        **(keys or {}),
    }
    (folder / "vars.json").write_text(json.dumps(variables))
    (folder / "trial.yml").write_text(
        "- hosts: all\n  gather_facts: false\n  roles: [preflight]\n", "utf-8"
    )
    group = "slurm_controller" if controller else group
    (folder / "hosts.ini").write_text(f"gpu02\n[{group}]\nlocalhost\n", "utf-8")
    argv = ["ansible-playbook", "-i", str(folder / "hosts.ini"), "--limit", "localhost"]
    done = subprocess.run(
        [*argv, "--extra-vars", f"@{folder / 'vars.json'}", str(folder / "trial.yml")],
        env=ansible_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_a_sound_host_passes(tmp_path: Path) -> None:
    assert "failed=0" in preflight(tmp_path, TRIXIE)


def test_every_reason_is_told_at_once(tmp_path: Path) -> None:
    text = preflight(
        tmp_path,
        {"distribution": "Debian", "distribution_version": "11.9"},
        uid=1000,
        systemd=False,
        hostname="gpu02",
        memory_mib=100,
        free_mib={"/": 5, "/var": 7},
        time_offset_s=-7200.0,
        package_lock_holder="unattended-upgr (pid 7)",
        package_error="dpkg: error: no such file",
    )
    for words in (
        "Debian 11.9 is not supported; supported are Debian 12, 13; Ubuntu 22.04, 24.04; RedHat",
        "tasks run as uid 1000, not as root",
        "systemd is not the init system",
        "calls itself gpu02, which is another host of the site",
        "100 MiB of memory, at least 512",
        "the disk is full: / has 5 MiB free of 1024 MiB needed, /var has 7 MiB free",
        "the clock is 7200.0 s behind this computer",
        "unattended-upgr (pid 7) has been installing packages for more than 120 s",
        "the package manager does not work: dpkg: error: no such file",
    ):
        assert words in text, text


@pytest.mark.parametrize(
    ("name", "version", "supported"),
    [("Ubuntu", "24.04", True), ("Ubuntu", "24.10", False), ("Rocky", "9.4", True)],
)
def test_systems_are_known_by_name_and_version(
    tmp_path: Path, name: str, version: str, supported: bool
) -> None:
    text = preflight(tmp_path, {"distribution": name, "distribution_version": version})
    assert ("failed=0" in text) is supported, text


@pytest.mark.parametrize(
    ("controller", "configured", "key", "refused"),
    [
        (True, True, "another", True),
        (True, True, "the site's", False),
        (True, True, "", False),
        (True, False, "another", False),  # of the package's own installation
        (False, True, "another", False),
    ],
)
def test_a_running_cluster_keeps_its_key(
    tmp_path: Path, controller: bool, configured: bool, key: str, refused: bool
) -> None:
    text = preflight(
        tmp_path,
        TRIXIE,
        controller=controller,
        slurm_configured=configured,
        munge_key_sha256=key,
    )
    assert ("failed=0" not in text) is refused, text
    assert ("runs a cluster with another munge key" in text) is refused
    assert ("hpcsite deploy --rotate-munge-key" in text) is refused


def test_the_probe_reads_memory_and_space(probe: ModuleType) -> None:
    assert probe.memory_mib("MemFree: 1 kB\nMemTotal:     4194304 kB\n") == 4096
    assert probe.memory_mib("") == 0
    assert probe.free_mib("/") > 0
    assert probe.free_mib("/no/such/folder") == 0


def test_the_probe_tells_keys_apart(probe: ModuleType, tmp_path: Path) -> None:
    key = tmp_path / "munge.key"
    assert probe.sha256_of(str(key)) == ""
    key.write_bytes(b"k" * 128)
    assert probe.sha256_of(str(key)) == sha256_of(key)


def test_the_probe_names_who_holds_dpkgs_lock(probe: ModuleType, tmp_path: Path) -> None:
    lock = tmp_path / "lock-frontend"
    lock.touch()
    assert probe.lock_holder(str(lock)) == ""
    assert probe.lock_holder(str(tmp_path / "none")) == ""
    ready, wait = os.pipe()
    child = os.fork()
    if child == 0:
        with lock.open("w") as handle:
            fcntl.lockf(handle, fcntl.LOCK_EX)
            os.write(wait, b"x")
            signal_never = os.pipe()[0]
            os.read(signal_never, 1)
        os._exit(0)
    os.read(ready, 1)
    try:
        assert f"(pid {child})" in probe.wait_for_lock(str(lock), 0)
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert probe.lock_holder(str(lock)) == ""


@pytest.mark.parametrize(
    ("tracking", "group", "told"),
    [
        ("cgroup", "slurm_compute", True),
        ("auto", "slurm_compute", False),
        ("linuxproc", "slurm_compute", False),
        ("cgroup", "slurm_login", False),
    ],
)
def test_a_site_that_wants_cgroups_is_told_which_node_has_none_and_why(
    tmp_path: Path, tracking: str, group: str, told: bool
) -> None:
    keys = {"site_slurm_process_tracking": tracking}
    text = preflight(tmp_path, TRIXIE, group=group, keys=keys, cgroup_problem="it runs cgroup v1")
    assert ("Slurm cannot confine jobs here: it runs cgroup v1" in text) is told
    assert ("failed=1" in text) is told


V2 = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"
V1 = "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
UNIFIED = "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
ALL = "cpuset cpu io memory hugetlb pids rdma misc\n"
SYSTEMD = "systemd 257 (257.9-1~deb13u1)\n+PAM +AUDIT\n"


@pytest.mark.parametrize(
    ("mounts", "controllers", "container", "systemd", "said"),
    [
        (V2, ALL, "", SYSTEMD, ""),
        (V2, ALL, "systemd-nspawn", SYSTEMD, ""),
        (V1, None, "", SYSTEMD, "it runs cgroup v1; boot it without"),
        (V1 + UNIFIED, None, "", SYSTEMD, "side by side (hybrid)"),
        ("", None, "", SYSTEMD, "no cgroups are mounted"),
        (
            V2,
            "io pids\n",
            "systemd-nspawn",
            SYSTEMD,
            "is a container (systemd-nspawn), and its host",
        ),
        (
            V2 + V1,
            "cpuset cpu\n",
            "",
            SYSTEMD,
            "no cgroup v2 controllers memory: cgroup v1 has them",
        ),
        (V2, "cpuset cpu\n", "", SYSTEMD, "controllers memory: the kernel lacks them"),
        (V2, ALL, "", "systemd 239 (239-82.el8)\n", "its systemd 239 does not delegate cpuset"),
    ],
)
def test_why_a_host_cannot_confine_jobs(
    probe: ModuleType,
    mounts: str,
    controllers: str | None,
    container: str,
    systemd: str,
    said: str,
) -> None:
    problem = probe.cgroup_problem(mounts, controllers, container, systemd)
    assert said in problem
    assert bool(problem) is bool(said)
