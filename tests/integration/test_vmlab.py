"""The lab of virtual machines on this computer, for real; nothing of it needs root.

Two machines of the example, under a name, ports, a network and a state folder of their own.
Under emulation a boot takes from half a minute to several: tests share the machines, and each
leaves them running.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hpcsite.lab import processes
from hpcsite.lab.qemu import folder
from hpcsite.lab.qemu.folder import FabricFolder, MachineFolder
from tests.labs import copy_lab

pytestmark = [
    pytest.mark.lab,
    pytest.mark.vm,
    pytest.mark.skipif(
        shutil.which("qemu-system-x86_64") is None, reason="no qemu on this computer"
    ),
]

HPCSITE = Path(sys.executable).parent / "hpcsite"
NAME, NETWORK, PORT_OFFSET = "vmlabtest", "10.233.0", 200
PORTS = {"head": 22310, "gpu01": 22321}
ADDRESSES = {"head": f"{NETWORK}.10", "gpu01": f"{NETWORK}.21"}
MEMORY_MIB = 1024
TOO_MUCH = f"site_lab_memory_mib: {10**8}"
SECONDS = 900
BOOT_ID = "cat /proc/sys/kernel/random/boot_id"


class VmLab:
    """An inventory of its own, and the command line."""

    def __init__(self, base: Path) -> None:
        self.state = base / "state"
        self.root = self.state / "labs" / NAME
        self.fabric = FabricFolder(self.root / "fabric")
        self.env = {**os.environ, "HPCSITE_STATE_DIR": str(self.state)}
        self.inventory = base / "a site" / NAME
        # The kinds of hosts of the example, so that its images do for these machines.
        copy_lab("vmlab", self.inventory, name=NAME, network=NETWORK, port_offset=PORT_OFFSET)
        settings = self.inventory / "group_vars" / "all" / "lab.yml"
        settings.write_text(re.sub(r"(memory_mib:) \d+", rf"\1 {MEMORY_MIB}", settings.read_text()))
        self.hosts = self.inventory / "hosts.yml"
        text = self.hosts.read_text()
        gpu02 = text[text.index("            gpu02:") : text.index("    nfs_client:")]
        self.hosts.write_text(text.replace(gpu02, ""))

    def start(self, command: str, *rest: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [HPCSITE, "lab", command, str(self.inventory), *rest],
            env=self.env,
            cwd="/",
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, command: str, *rest: str) -> subprocess.CompletedProcess[str]:
        process = self.start(command, *rest)
        out, error = process.communicate(timeout=2 * SECONDS)
        return subprocess.CompletedProcess(process.args, process.returncode, out, error)

    def ok(self, command: str, *rest: str) -> str:
        done = self.run(command, *rest)
        assert done.returncode == 0, done.stderr
        return done.stderr

    def status(self) -> dict[str, Any]:
        found = json.loads(self.run("status", "--json").stdout)
        assert isinstance(found, dict)
        return found

    def states(self) -> dict[str, str]:
        return {each["name"]: each["state"] for each in self.status()["machines"]}

    def machine(self, node: str) -> MachineFolder:
        return MachineFolder(self.root / "machines" / node)

    def pid(self, node: str) -> int:
        found = folder.process(self.machine(node).mark)
        assert found is not None, f"{node} is off"
        return found

    def processes(self) -> list[int]:
        """Every process that has something of this lab on its command line."""
        mark = str(self.root)
        return processes.find(lambda pid: any(mark in word for word in processes.command_line(pid)))

    def ssh(self, node: str, command: str) -> subprocess.CompletedProcess[str]:
        files = self.inventory / ".lab" / "ssh"
        return subprocess.run(
            [
                *("ssh", "-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"),
                *("-o", f'UserKnownHostsFile="{files / "known_hosts"}"', "-o", "ConnectTimeout=60"),
                *("-o", "IdentitiesOnly=yes", "-i", str(files / "id_ed25519"), "-p"),
                *(str(PORTS[node]), "root@127.0.0.1", command),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def said(self, node: str, command: str) -> str:
        done = self.ssh(node, command)
        assert done.returncode == 0, f"{node}: {command}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def boot_id(self, node: str) -> str:
        return self.said(node, BOOT_ID)

    def reach_each_other(self) -> bool:
        """Tell whether large frames pass, unfragmented."""
        ping = f"ping -M do -s 8000 -c 1 -W 20 {ADDRESSES['gpu01']}"
        return self.ssh("head", ping).returncode == 0


def until(done: Callable[[], bool], seconds: float = SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.5)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VmLab]:
    """Give a lab that may be up or not."""
    # Deep: a socket's path could not hold it.
    found = VmLab(tmp_path_factory.mktemp("vm") / ("deep-" * 12).rstrip("-"))
    try:
        yield found
    finally:
        found.run("down")


@pytest.fixture
def lab(bare: VmLab) -> VmLab:
    """Give the same one, up."""
    bare.ok("up")
    return bare


def test_a_taken_port_is_named_before_anything_is_made(bare: VmLab) -> None:
    with socket.create_server(("127.0.0.1", PORTS["gpu01"])):
        done = bare.run("up")
    assert done.returncode == 4
    assert f"gpu01: port {PORTS['gpu01']} of 127.0.0.1" in done.stderr
    assert f"process {os.getpid()}" in done.stderr
    assert "ansible_port" in done.stderr
    assert not bare.state.exists()
    assert not (bare.inventory / ".lab").exists()


def test_too_little_memory_is_told_before_anything_is_made(bare: VmLab) -> None:
    text = bare.hosts.read_text()
    address = f"site_address: {ADDRESSES['head']}"
    bare.hosts.write_text(text.replace(address, f"{address}\n          {TOO_MUCH}"))
    try:
        done = bare.run("up")
    finally:
        bare.hosts.write_text(text)
    assert done.returncode == 4
    assert f"{10**8 + MEMORY_MIB + 256} MiB are needed" in done.stderr
    assert "site_lab_memory_mib" in done.stderr
    assert not bare.state.exists()


def test_down_while_machines_boot_does_not_wait_for_them(bare: VmLab) -> None:
    up = bare.start("up")
    until(lambda: bool(bare.root.is_dir() and bare.machine("head").console.exists()))
    bare.ok("down")
    _, error = up.communicate(timeout=SECONDS)
    assert up.returncode == 4
    assert error.count("another command is removing the lab") == 1
    assert_nothing_is_left(bare)


def test_a_killed_up_is_mended_by_the_next(bare: VmLab) -> None:
    up = bare.start("up")
    until(lambda: bool(bare.root.is_dir() and bare.machine("gpu01").console.exists()))
    up.kill()
    up.communicate()
    said = bare.ok("up")
    assert "virtual machines run by" in said
    assert bare.states() == {"head": "running", "gpu01": "running"}


def test_machines_are_themselves_and_reach_each_other(lab: VmLab) -> None:
    status = lab.status()
    assert status["nature"]["fabric"] is True
    assert all(each["ssh"] for each in status["machines"])
    names = {node: lab.said(node, "hostname; cat /etc/machine-id") for node in PORTS}
    assert names["head"].startswith("head\n")
    assert names["head"].splitlines()[1] != names["gpu01"].splitlines()[1]
    shown = lab.said("head", "ip -o -4 address show dev fabric0; cat /sys/class/net/fabric0/mtu")
    assert f"{NETWORK}.10/24" in shown
    assert shown.endswith("9000")
    assert lab.said("head", "systemctl --failed --no-legend") == ""
    assert lab.reach_each_other()


def test_what_runs_well_is_left_alone(lab: VmLab) -> None:
    before = [lab.pid(node) for node in PORTS]
    lab.ok("up")
    assert [lab.pid(node) for node in PORTS] == before


def test_a_killed_hub_is_replaced_without_a_restart(lab: VmLab) -> None:
    boots = {node: lab.boot_id(node) for node in PORTS}
    hub = folder.process(lab.fabric.mark)
    assert hub is not None
    os.kill(hub, signal.SIGKILL)
    until(lambda: folder.process(lab.fabric.mark) is None, 30)
    done = lab.run("status")
    assert done.returncode == 1
    assert "fabric is down" in done.stdout
    lab.ok("up")
    assert {node: lab.boot_id(node) for node in PORTS} == boots
    assert lab.reach_each_other()


def test_a_killed_machine_is_seen_and_mended_and_the_other_left_alone(lab: VmLab) -> None:
    other = lab.boot_id("head")
    lab.said("gpu01", "echo kept > /root/kept; sync")
    os.kill(lab.pid("gpu01"), signal.SIGKILL)
    until(lambda: lab.states() == {"head": "running", "gpu01": "stopped"}, 60)
    assert lab.run("status").returncode == 1
    lab.ok("up")
    assert lab.boot_id("head") == other
    assert lab.said("gpu01", "cat /root/kept") == "kept"
    assert lab.reach_each_other()
    assert lab.machine("gpu01").console.with_name("console.log.1").stat().st_size > 0


def test_a_machine_may_reboot_itself_and_power_off(lab: VmLab) -> None:
    pid, boot = lab.pid("gpu01"), lab.boot_id("gpu01")
    lab.ssh("gpu01", "systemctl reboot")
    # It answers for a while before it goes down.
    until(lambda: lab.ssh("gpu01", BOOT_ID).stdout.strip() not in ("", boot))
    assert lab.pid("gpu01") == pid
    until(lab.reach_each_other, 120)
    lab.ssh("gpu01", "systemctl poweroff")
    until(lambda: lab.states()["gpu01"] == "stopped")
    lab.ok("start", "gpu01")
    assert lab.reach_each_other()


def test_reset_keeps_the_name_and_the_host_key_and_nothing_else(lab: VmLab) -> None:
    lab.said("gpu01", "touch /root/mine")
    identity = lab.said("gpu01", "cat /etc/machine-id")
    lab.ok("reset", "gpu01")
    assert lab.said("gpu01", "ls /root") == ""
    assert lab.said("gpu01", "cat /etc/machine-id") != identity


def test_a_machine_that_does_not_come_up_shows_its_console(lab: VmLab) -> None:
    lab.ok("stop", "gpu01")
    assert lab.states()["gpu01"] == "stopped"
    disk = lab.machine("gpu01").disk
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", disk, "1G"], check=True)
    done = lab.run("start", "gpu01")
    assert done.returncode == 1
    assert "gpu01: the machine does not come up: its initrd found no system" in done.stderr
    assert "the end of its console" in done.stderr
    assert "(initramfs)" in done.stderr
    lab.ok("reset", "gpu01")


def test_down_leaves_nothing(lab: VmLab) -> None:
    lab.ok("down")
    assert_nothing_is_left(lab)
    assert lab.ok("down").endswith("nothing to remove\n")


def assert_nothing_is_left(lab: VmLab) -> None:
    assert lab.processes() == []
    assert not lab.state.exists()
    assert not (lab.inventory / ".lab").exists()
    for port in PORTS.values():
        with socket.create_server(("127.0.0.1", port)):
            pass
