"""The lab on this computer, for real: as root, with its own name, network and state folder.

Only the caches are shared with other labs, so that no image is built twice.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hpcsite.paths import content_dir

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(os.geteuid() != 0, reason="the lab needs root"),
]

HPCSITE = Path(sys.executable).parent / "hpcsite"
NAME, NETWORK = "labtest", "10.223.0"
MACHINES = {"head": 10, "login": 11, "gpu01": 21, "gpu02": 22}
SETTINGS = ("net/ipv4/ip_forward", "fs/inotify/max_user_instances")


class LabUnderTest:
    """An inventory of its own, and the command line."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "state"
        self.env = {**os.environ, "HPCSITE_STATE_DIR": str(self.state)}
        self.inventory = self.copy(folder / "inventory", NAME, NETWORK)

    @staticmethod
    def copy(target: Path, name: str, network: str) -> Path:
        source = content_dir() / "inventory" / "lab"
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(".lab", "secrets"))
        for path in (target / "hosts.yml", target / "group_vars/all/lab.yml"):
            path.write_text(path.read_text().replace("10.213.0", network))
        site = target / "group_vars/all/site.yml"
        site.write_text(site.read_text().replace("site_name: lab\n", f"site_name: {name}\n"))
        return target

    def run(self, *argv: str, inventory: Path | None = None) -> subprocess.CompletedProcess[str]:
        command, *rest = argv
        return subprocess.run(
            [HPCSITE, "lab", command, str(inventory or self.inventory), *rest],
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )

    def ok(self, *argv: str) -> str:
        done = self.run(*argv)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def status(self) -> dict[str, Any]:
        found = json.loads(self.run("status", "--json").stdout)
        assert isinstance(found, dict)
        return found

    def states(self) -> dict[str, str]:
        return {each["name"]: each["state"] for each in self.status()["machines"]}

    def ssh(self, node: str, command: str) -> str:
        files = self.inventory / ".lab" / "ssh"
        done = subprocess.run(
            [
                *("ssh", "-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"),
                *("-o", f"UserKnownHostsFile={files / 'known_hosts'}", "-o", "IdentitiesOnly=yes"),
                *("-i", str(files / "id_ed25519"), f"root@{NETWORK}.{MACHINES[node]}", command),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def boot_ids(self) -> dict[str, str]:
        # Containers share the kernel's boot_id; their init's start time is their own.
        return {node: self.ssh(node, "stat -c %Y /proc/1") for node in MACHINES}

    def supervisors(self, node: str) -> list[int]:
        needle = f"--machine={NAME}-{node}"
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                argv = path.read_bytes().split(b"\0")
            except OSError:
                continue
            if needle.encode() in argv:
                found.append(int(path.parent.name))
        return found


def output(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout


def settings() -> dict[str, str]:
    return {name: (Path("/proc/sys") / name).read_text() for name in SETTINGS}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabUnderTest]:
    found = LabUnderTest(tmp_path_factory.mktemp("lab"))
    try:
        found.ok("up")
        yield found
    finally:
        found.run("down")


def test_the_machines_are_what_the_inventory_says(lab: LabUnderTest) -> None:
    assert lab.states() == dict.fromkeys(MACHINES, "running")
    assert all(each["ssh"] for each in lab.status()["machines"])
    assert lab.ssh("gpu01", "hostname -f") == "gpu01.lab.example"
    assert lab.ssh("gpu01", "cat /sys/class/net/host0/address") != lab.ssh(
        "gpu02", "cat /sys/class/net/host0/address"
    )
    devices = lab.ssh("gpu02", "stat -c '%n %t:%T' /dev/nvidia*").splitlines()
    assert devices == [f"/dev/nvidia{number} c3:{number}" for number in range(8)]
    assert lab.ssh("head", "ls /dev/nvidia* 2>/dev/null || true") == ""
    assert lab.ssh("login", "systemctl --failed --no-legend") == ""
    assert lab.ssh("login", f"ping -c1 -W2 {NETWORK}.21 >/dev/null && echo yes") == "yes"
    for name in ("slurmctld", "munged", "chronyd", "mpirun"):
        assert lab.ssh("head", f"command -v {name} || true") == ""


def test_up_leaves_running_machines_alone(lab: LabUnderTest) -> None:
    before = lab.boot_ids()
    lab.ok("up")
    assert lab.boot_ids() == before


def test_up_mends_a_dead_machine_a_missing_bridge_and_missing_rules(lab: LabUnderTest) -> None:
    lab.ssh("gpu01", "touch /root/kept")
    for pid in lab.supervisors("gpu01"):
        os.kill(pid, signal.SIGKILL)
    output("ip", "link", "delete", f"hpc-{NAME}")
    output("nft", "delete", "table", "ip", f"hpcsite_{NAME}")
    done = lab.run("status")
    assert done.returncode == 1
    lab.ok("up")
    assert lab.run("status").returncode == 0
    assert lab.ssh("gpu01", "ls /root/kept") == "/root/kept"
    assert "masquerade" in output("nft", "list", "table", "ip", f"hpcsite_{NAME}")


def test_a_machine_powered_off_and_on_keeps_its_files(lab: LabUnderTest) -> None:
    lab.ssh("gpu02", "echo here > /root/file")
    lab.ok("stop", "gpu02")
    assert lab.states() == {**dict.fromkeys(MACHINES, "running"), "gpu02": "stopped"}
    lab.ok("start", "gpu02")
    assert lab.ssh("gpu02", "cat /root/file") == "here"


def test_reset_gives_fresh_machines_with_the_same_host_keys(lab: LabUnderTest) -> None:
    before = lab.boot_ids()
    known_hosts = (lab.inventory / ".lab/ssh/known_hosts").read_text()
    for node in ("gpu01", "gpu02", "login"):
        lab.ssh(node, "touch /root/old")
    lab.ok("reset", "gpu[01-02]")
    assert (lab.inventory / ".lab/ssh/known_hosts").read_text() == known_hosts
    for node in ("gpu01", "gpu02"):
        assert lab.ssh(node, "ls -A /root | grep old || true") == ""
    assert lab.ssh("login", "ls /root/old") == "/root/old"
    after = lab.boot_ids()
    assert {node for node in MACHINES if after[node] != before[node]} == {"gpu01", "gpu02"}


def test_an_unknown_machine_is_a_usage_error(lab: LabUnderTest) -> None:
    done = lab.run("reset", "gpu[02-03]")
    assert done.returncode == 2
    assert "gpu03" in done.stderr
    assert "hint: " in done.stderr


def test_other_labs_in_the_way_are_refused_and_this_one_stays(
    lab: LabUnderTest, tmp_path: Path
) -> None:
    overlapping = lab.copy(tmp_path / "overlapping", "labtest2", NETWORK)
    done = lab.run("up", inventory=overlapping)
    assert done.returncode == 4
    assert f"{NETWORK}.0/24 collides with {NETWORK}.0/24 of the lab on hpc-{NAME}" in done.stderr
    assert not (overlapping / ".lab").exists()

    same_name = lab.copy(tmp_path / "same", NAME, "10.223.1")
    for command in ("up", "down"):
        done = lab.run(command, inventory=same_name)
        assert done.returncode == 4
        assert str(lab.inventory) in done.stderr
    elsewhere = {**lab.env, "HPCSITE_STATE_DIR": str(tmp_path / "state")}
    done = subprocess.run(
        [HPCSITE, "lab", "up", str(same_name)],
        env=elsewhere,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4
    assert str(lab.state) in done.stderr
    assert lab.run("status").returncode == 0


def test_devices_and_machines_follow_the_inventory(lab: LabUnderTest) -> None:
    hosts = lab.inventory / "hosts.yml"
    original = hosts.read_text()
    line = f"              ansible_host: {NETWORK}.22\n"
    hosts.write_text(original.replace(line, f"{line}              site_lab_gpus: 3\n"))
    assert hosts.read_text() != original
    lab.ok("up")
    assert len(lab.ssh("gpu02", "ls /dev/nvidia*").split()) == 3
    hosts.write_text(original.replace(f"            gpu02:\n{line}", ""))
    lab.ok("up")
    assert not (lab.state / "labs" / NAME / "machines" / "gpu02").exists()
    hosts.write_text(original)
    lab.ok("up")
    assert len(lab.ssh("gpu02", "ls /dev/nvidia*").split()) == 8


@pytest.mark.parametrize("seconds", [0.9, 1.3, 1.8])
def test_a_killed_up_is_mended_by_the_next(lab: LabUnderTest, seconds: float) -> None:
    lab.ok("down")
    with subprocess.Popen(
        [HPCSITE, "lab", "up", str(lab.inventory)],
        env=lab.env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        time.sleep(seconds)
        process.kill()
    lab.ok("up")
    assert lab.run("status").returncode == 0


def test_ctrl_c_ends_up_and_down_cleans_what_it_left(lab: LabUnderTest) -> None:
    lab.ok("down")
    with subprocess.Popen(
        [HPCSITE, "lab", "up", str(lab.inventory)],
        env=lab.env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        time.sleep(1.3)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 130, said
    assert "interrupted" in said
    assert "Traceback" not in said
    lab.ok("down")
    assert_nothing_left(lab)


def test_down_leaves_nothing(lab: LabUnderTest) -> None:
    alone = not other_labs()
    before = settings()
    lab.ok("up")
    for pid in lab.supervisors("head"):
        os.kill(pid, signal.SIGKILL)
    lab.ok("down")
    assert_nothing_left(lab)
    if alone and not other_labs():
        assert settings() == before
        assert not Path("/run/hpcsite").exists()
    done = lab.run("down")
    assert done.returncode == 0
    assert "nothing to remove" in done.stderr


def other_labs() -> bool:
    """Whether labs are up beside this one, whose tests may run at the same time."""
    return "hpcsite_" in output("nft", "list", "tables").replace(f"hpcsite_{NAME}", "")


def assert_nothing_left(lab: LabUnderTest) -> None:
    assert not lab.state.exists()
    assert not (lab.inventory / ".lab").exists()
    assert str(lab.state) not in Path("/proc/self/mountinfo").read_text()
    assert NAME not in output("ip", "-brief", "link")
    assert NAME not in output("nft", "list", "tables")
    assert [pid for node in MACHINES for pid in lab.supervisors(node)] == []
    assert NAME not in " ".join(
        path.name for path in Path("/run/systemd/nspawn").glob("*/*") if path.exists()
    )
