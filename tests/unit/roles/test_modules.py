"""The Ansible modules' pure parts, loaded from their files as Ansible does."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hpcsite.paths import content_dir

# slurmd -C of Slurm 24.11 and of 21.08.
SLURMD_C = """\
NodeName=gpu01 CPUs=224 Boards=1 SocketsPerBoard=2 CoresPerSocket=56 ThreadsPerCore=2 \
RealMemory=2064112
UpTime=12-03:04:05
"""
SLURMD_C_OLD = """\
slurmd: Considering each NUMA node as a socket
NodeName=old1 CPUs=8 Sockets=2 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=15890 TmpDisk=100
"""


def load(folder: str, name: str) -> ModuleType:
    path = content_dir() / "plugins" / folder / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_module(name: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - any option
    """Run a module as Ansible does, and read its result."""
    done = subprocess.run(
        [sys.executable, content_dir() / "plugins/modules" / f"{name}.py"],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.parametrize(
    ("text", "expected"),
    [(SLURMD_C, (224, 2, 56, 2, 2064112)), (SLURMD_C_OLD, (8, 2, 4, 1, 15890))],
)
def test_slurmd_c_is_read(text: str, expected: tuple[int, ...]) -> None:
    assert tuple(load("modules", "slurmd_evidence").parse_slurmd_c(text).values()) == expected


def test_an_incomplete_slurmd_c_is_an_error() -> None:
    with pytest.raises(KeyError):
        load("modules", "slurmd_evidence").parse_slurmd_c("slurmd: fatal: no hwloc")


def test_gpu_devices_are_counted_by_number_only(tmp_path: Path) -> None:
    for name in ("nvidia0", "nvidia10", "nvidia2", "nvidiactl", "nvidia-uvm", "nvidia3x"):
        (tmp_path / name).touch()
    devices = load("modules", "slurmd_evidence").gpu_devices(f"{tmp_path}/nvidia")
    assert [Path(device).name for device in devices] == ["nvidia0", "nvidia2", "nvidia10"]


def test_without_cgroup_v2_there_are_no_controllers(tmp_path: Path) -> None:
    module = load("modules", "slurmd_evidence")
    assert module.cgroup_controllers(str(tmp_path / "missing")) == []
    (tmp_path / "controllers").write_text("cpuset cpu memory\n")
    assert module.cgroup_controllers(str(tmp_path / "controllers")) == ["cpuset", "cpu", "memory"]


def test_a_daemon_is_stale_when_a_file_is_younger(tmp_path: Path) -> None:
    is_stale = load("modules", "daemon").is_stale
    file = tmp_path / "x.conf"
    file.touch()
    os.utime(file, (1000.0, 1000.0))
    # Now is 2000 s by the clock, 500 s after boot: a start 1 s before and after the file.
    assert is_stale(-501_000_000, [str(file)], 2000.0, 500.0)
    assert not is_stale(-499_000_000, [str(file)], 2000.0, 500.0)
    assert not is_stale(-501_000_000, [str(tmp_path / "missing")], 2000.0, 500.0)


def test_properties_may_hold_equals_signs() -> None:
    text = "ActiveState=active\nExecStart={ path=/x ; argv[]=/x }\n"
    assert load("modules", "daemon").parse_properties(text) == {
        "ActiveState": "active",
        "ExecStart": "{ path=/x ; argv[]=/x }",
    }


def test_drained_nodes_are_told_by_their_reason() -> None:
    listing = (
        "NodeName=gpu01 State=IDLE+DRAIN Reason=hpcsite: gpu01 breaks its contract [root@2026]\n"
        "NodeName=gpu02 State=ALLOCATED+DRAIN Reason=bad fan [root@2026]\n"
        "NodeName=gpu03 State=IDLE\nNodeName=gpu04 State=DOWN* Reason=Not responding [slurm@2026]\n"
    )
    drained = load("filter", "hpcsite_slurm").slurm_drained_nodes
    assert drained(listing) == ["gpu01", "gpu02"]
    assert drained(listing, "hpcsite: ") == ["gpu01"]


def test_a_node_that_slurmctld_does_not_know_is_at_fault() -> None:
    node = load("filter", "hpcsite_slurm").slurm_node
    assert node("", "gpu01") == {"heard": False, "fault": "slurmctld does not know it"}
    assert node("NodeName=gpu01 State=IDLE Weight=1", "gpu01") == {"heard": True, "fault": ""}
    down = node("NodeName=gpu01 State=DOWN Reason=burnt [root@2026]", "gpu01")
    assert down == {"heard": True, "fault": "it is DOWN: burnt"}


def test_nodes_with_jobs_are_named_with_them() -> None:
    on = load("filter", "hpcsite_slurm").slurm_jobs_on
    assert on("7|gpu[01-02]\n8|gpu02\n", ["gpu02", "gpu03"]) == ["gpu02 (job 7, 8)"]


FILES = {"slurm.conf": "ClusterName=a\nMaxJobCount=5\n", "gres.conf": "", "cgroup.conf": ""}


def test_the_first_deploy_is_a_restart_and_the_second_nothing() -> None:
    action = load("filter", "hpcsite_slurm").slurm_action
    assert action({}, FILES, "", list(FILES)) == "restart"
    assert action(FILES, FILES, FILES["slurm.conf"]) == "none"
    assert action(FILES, FILES | {"gres.conf": "Name=gpu"}, FILES["slurm.conf"]) == "reconfigure"


@pytest.mark.parametrize(
    ("standing", "expected"),
    [
        ("ClusterName=b\nMaxJobCount=5\n", "restart"),
        ("ClusterName=a\nMaxJobCount=9\n", "reconfigure"),
        ("ClusterName=a\n# by hand\nMaxJobCount=5\n", "reconfigure"),
    ],
)
def test_what_somebody_else_wrote_is_taken_back(standing: str, expected: str) -> None:
    action = load("filter", "hpcsite_slurm").slurm_action
    assert action(FILES, FILES, standing, ["slurm.conf"]) == expected


def test_a_deploy_that_was_killed_after_writing_is_finished() -> None:
    action = load("filter", "hpcsite_slurm").slurm_action
    applied = FILES | {"slurm.conf": "ClusterName=b\n"}
    assert action(applied, FILES, FILES["slurm.conf"]) == "restart"


def test_users_without_a_group_get_one_of_their_own() -> None:
    module = load("filter", "hpcsite_users")
    users = [{"name": "a", "uid": 2001}, {"name": "b", "uid": 2002, "group": "research"}]
    assert module.own_groups(users) == [{"name": "a", "gid": 2001}]


def test_users_are_present_unless_they_say_otherwise() -> None:
    in_state = load("filter", "hpcsite_users").in_state
    users = [{"name": "a"}, {"name": "b", "state": "absent"}, {"name": "c", "state": "present"}]
    assert [user["name"] for user in in_state(users, "present")] == ["a", "c"]
    assert [user["name"] for user in in_state(users, "absent")] == ["b"]


def test_an_empty_list_of_keys_is_written_and_no_list_is_not() -> None:
    module = load("filter", "hpcsite_users")
    users = [
        {"name": "a", "uid": 2001},
        {"name": "b", "uid": 2002, "ssh_keys": []},
        {"name": "c", "uid": 2003, "ssh_keys": ["k"], "group": "research", "home": "/h/c"},
        {"name": "d", "uid": 2004, "ssh_keys": ["k"]},
        {"name": "e", "uid": 2005, "ssh_keys": None},
    ]
    homes = module.local_homes(users, iter(["d"]))
    assert [home["create_home"] for home in homes] == [True, True, True, False, True]
    assert module.home_keys(homes, [{"name": "research", "gid": 2000}]) == [
        {"name": "b", "path": "/home/b", "uid": 2002, "gid": 2002, "ssh_keys": []},
        {"name": "c", "path": "/h/c", "uid": 2003, "gid": 2000, "ssh_keys": ["k"]},
    ]


def test_a_site_without_compute_nodes_has_a_configuration() -> None:
    configuration = load("filter", "hpcsite_slurm").slurm_configuration
    paths = {"state_dir": "/var/spool/slurmctld", "spool_dir": "/var/spool/slurmd"}
    made = configuration({"head": {"site_name": "lab"}}, "head", {}, paths)
    assert "SlurmctldHost=head\n" in made["files"]["slurm.conf"]
    assert made["problems"] == {}
