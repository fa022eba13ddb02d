"""What hosts say is read, and what cannot be read is left out."""

import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcsite.discover.ask import Refusal, ask, probe
from hpcsite.discover.facts import Cpus, Disk, Facts, Gpu
from hpcsite.discover.parse import parse
from tests.unit.discover.samples import facts, recorded


def test_dgx() -> None:
    host = facts("dgx01")
    assert (host.hostname, host.product) == ("dgx01", "NVIDIA DGXH100")
    assert host.os == "Ubuntu 22.04.4 LTS"
    assert host.cpus == Cpus(2, 56, 2)
    assert host.memory_mib == 2113400240 // 1024
    assert host.gpus == (Gpu("NVIDIA H100 80GB HBM3", 81559),) * 8
    assert host.hcas == Counter({("MT4129", "InfiniBand"): 8, ("MT4129", "Ethernet"): 4})
    rates = Counter(port.rate_gbit_s for port in host.ports if port.active)
    assert rates == Counter({400: 8, 100: 2})
    assert host.default_interface == "eno3"
    assert {i.name: i.addresses for i in host.interfaces if i.addresses} == {
        "eno3": ("10.20.1.1",),
        "ibp24s0": ("10.21.1.1",),
        "docker0": ("172.17.0.1",),
    }
    assert host.interfaces[0].mac == "0c:42:a1:00:01:01"
    assert host.interfaces[1].mtu == 9000
    # The drive for CDs that the service processor lends is none of the machine's disks.
    assert Counter(disk.kind for disk in host.disks) == {"1.9 TB NVMe": 2, "3.8 TB NVMe": 8}
    assert host.ssh_address == "10.20.1.1"


def test_node_without_gpus() -> None:
    host = facts("cpu01")
    assert host.hostname == "cpu01"
    assert host.cpu_model == "AMD EPYC 9354 32-Core Processor"
    assert host.gpus == ()
    assert [port.active for port in host.ports] == [True, False]
    assert [port.interfaces for port in host.ports] == [("eno12399np0",), ("eno12409np1",)]


def test_system_without_tools() -> None:
    host = facts("n1")
    assert host.cpus == Cpus(2, 8, 2)
    assert host.product == ""
    assert host.cpu_model.startswith("Intel(R) Xeon(R) Silver 4208")
    # nvidia-smi has no driver to ask: the list of PCI devices has names of its own.
    assert host.gpus == (Gpu("AD102GL [L40S]", driver=False),) * 2
    assert host.disks[0] == Disk("sda", 1875385008 * 512, rotational=True, model="ST1000NM0008")


def test_places_of_processors_by_cpuinfo() -> None:
    text = re.sub(r"(?m)^cpu\d+\t.*\n", "", recorded("n1"))
    without = parse("n1", text)
    assert without is not None
    assert without.cpus == Cpus(2, 8, 2)
    bare = parse("n1", re.sub(r"(?m)^(physical|core) id.*\n", "", text))
    assert bare is not None
    assert bare.cpus == Cpus(1, 32, 1)


@pytest.mark.parametrize(
    "text",
    ["", "sh: command not found", "@@hpcsite begin\n", "\x00\xff@@hpcsite", "@@hpcsite end\n" * 3],
)
def test_no_answer_is_no_host(text: str) -> None:
    assert parse("x", text) is None


def test_answer_that_breaks_off_is_none() -> None:
    whole = recorded("dgx01")
    assert parse("x", whole[: whole.index("@@hpcsite end")]) is None


_LINES = recorded("dgx01").splitlines() + recorded("n1").splitlines()
_NOISE = st.one_of(st.text(max_size=40), st.sampled_from(_LINES))


@settings(max_examples=300, deadline=None)
@given(st.lists(_NOISE, max_size=80))
def test_any_text_is_read_without_an_error(lines: list[str]) -> None:
    text = "\n".join(["@@hpcsite begin", *lines, "@@hpcsite end", ""])
    assert isinstance(parse("x", text), Facts)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_spoilt_answers_are_read_without_an_error(data: st.DataObject) -> None:
    lines = recorded("dgx01").splitlines()
    for _ in range(data.draw(st.integers(1, 6))):
        number = data.draw(st.integers(3, len(lines) - 2))
        lines[number] = data.draw(st.text(max_size=30)) + lines[number][5:]
    found = parse("x", "\n".join(lines))
    assert found is None or found.target == "x"


@pytest.mark.parametrize("shell", ["sh", "dash", "bash"])
def test_program_reads_this_computer(shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"no {shell} here")
    found = ask("here", ["env", f"ENV={shell}", shell, "-s", "--"], probe())
    assert isinstance(found, Facts), found
    assert found.hostname == os.uname().nodename.partition(".")[0]
    assert found.cpus is not None
    logical = found.cpus.sockets * found.cpus.cores_per_socket * found.cpus.threads_per_core
    assert logical == len(list(Path("/sys/devices/system/cpu").glob("cpu[0-9]*/topology")))
    total = re.search(r"MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    assert total is not None
    assert found.memory_mib == int(total[1]) // 1024
    assert {i.name for i in found.interfaces} >= {"lo"}
    assert found.os


def test_program_is_posix_and_only_reads() -> None:
    text = probe()
    assert "\t" not in text.replace("s/^\t", "")
    for word in ("[[", "local ", "function ", "sudo", "python", "mktemp", ">>", "install "):
        assert word not in text
    # Nothing is redirected but what is said of errors.
    assert set(re.findall(r"\d?>[^\s;)]*", text)) <= {"2>/dev/null", ">/dev/null", "2>&1"}


def test_program_leaves_out_what_is_not_there(tmp_path: Path) -> None:
    """Without any tool on the path, the kernel's files are read all the same."""
    text = probe().replace("PATH=$PATH:/usr/sbin:/sbin:/usr/bin:/bin", f"PATH={tmp_path}")
    done = subprocess.run(["/bin/sh"], input=text, capture_output=True, text=True, check=False)
    found = parse("here", done.stdout)
    assert found is not None
    assert found.hostname
    assert found.cpus is not None
    assert found.memory_mib is None


def test_host_that_refuses_says_why() -> None:
    said = "Host key verification failed."
    refused = ask("gpu01", ["sh", "-c", f"echo noise; echo {said!r} >&2; exit 255"], probe())
    assert refused == Refusal("gpu01", said)


def test_host_that_hangs_is_given_up() -> None:
    refused = ask("gpu01", ["sh", "-c", "sleep 30"], probe(), within_s=1)
    assert refused == Refusal("gpu01", "no answer within 1 s")
