"""What a console says, and what it says that nobody should wait any longer."""

from ipaddress import IPv4Network
from pathlib import Path

import pytest

from hpcsite.lab import console
from hpcsite.lab.qemu.backend import Qemu
from hpcsite.lab.qemu.identity import Environment
from hpcsite.lab.spec import LabSpec
from hpcsite.lab.state import LabDirs
from hpcsite.site.model import Lab, Site, SiteKeys


@pytest.fixture
def backend(tmp_path: Path) -> Qemu:
    lab = Lab(network=IPv4Network("10.214.0.0/24"), backend="qemu")
    site = Site(path=tmp_path, keys=SiteKeys(name="vmlab", lab=lab), hosts={})
    dirs = LabDirs(tmp_path / "lab", tmp_path)
    (dirs.machines / "gpu01").mkdir(parents=True)
    spec = LabSpec("vmlab", tmp_path, site, lab, ())
    return Qemu(spec, dirs, Environment(lab.network, "", "ssh-ed25519 A"))


def write(backend: Qemu, text: str) -> None:
    (backend.dirs.machines / "gpu01" / "console.log").write_text(text)


def test_the_end_is_readable_and_short(tmp_path: Path) -> None:
    path = tmp_path / "console.log"
    path.write_text("".join(f"line {n}\r\n\r\n" for n in range(50)) + "[\x1b[0;32m  OK  \x1b[0m] x")
    assert console.end(path).splitlines()[0] == "line 31"
    assert console.end(path).endswith("[  OK  ] x")
    assert console.end(tmp_path / "missing") == ""


def test_of_waiting_the_last_second_is_told(tmp_path: Path) -> None:
    path = tmp_path / "console.log"
    waiting = "".join(
        f"\x1bM\r\x1b[K[ \x1b[0;31m*\x1b[0m    ] Job a.service/start running ({n}s / no limit)\r\n"
        for n in range(40)
    )
    path.write_text(f"before\r\n{waiting}after\r\n")
    assert console.end(path).splitlines() == [
        "before",
        "[ *    ] Job a.service/start running (39s / no limit)",
        "after",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "[    9.1] Kernel panic - not syncing: VFS: Unable to mount root fs\r\n",
        "No init found. Try passing init= bootarg.\r\n(initramfs) ",
        "You are in emergency mode. After logging in, type\r\n",
    ],
)
def test_a_machine_that_waits_for_somebody_is_stuck(backend: Qemu, text: str) -> None:
    write(backend, "Loading, please wait...\r\n" + text)
    assert backend.stuck("gpu01")


def test_one_that_boots_is_not(backend: Qemu) -> None:
    assert backend.stuck("gpu01") == ""
    write(backend, "[  OK  ] Reached target network.target\r\n")
    assert backend.stuck("gpu01") == ""
    assert not backend.seems_up("gpu01")
    write(backend, "[\x1b[0;32m  OK  \x1b[0m] Started \x1b[0;1;39mssh.service\x1b[0m - OpenBSD\r\n")
    assert backend.seems_up("gpu01")
