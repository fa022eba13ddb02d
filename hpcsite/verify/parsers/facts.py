"""What `programs/survey.sh` says of a host: `key=value` lines, versions as tools print them.

Nothing here is ever an error: what a host does not say is missing, and what a tool says that has no
version in it is `UNKNOWN`. Whoever compares hosts decides what that means.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from hpcsite.verify.parsers.pcie import PcieDevice, read_device

UNKNOWN = "unknown"
_VERSION = r"(\d+(?:\.\d+)+[\w.+~-]*)"
# What a tool says before its version; the version is the last group.
_PATTERNS = {
    "munge": rf"munge-{_VERSION}",
    "nvidia_driver": rf"^{_VERSION}",
    "cuda": r"^(\d+(?:\.\d+)+)$|release (\d+\.\d+)",
    "nccl": r"libnccl\.so\.(\d+\.\d+\.\d+)",
    # MLNX_OFED_LINUX-23.10-1.1.9.0: or OFED-internal-24.10-0.7.0:
    "ofed": r"OFED[\w-]*?-(\d[\w.-]*)",
    "runtime.enroot": rf"^{_VERSION}",
}
_OTHERS = ("fabric_manager", "dcgm", "ucx")
# Makers of mpirun; their names and versions stand in its first words.
_MPI = (
    (re.compile(rf"\(Open MPI\) {_VERSION}"), "Open MPI"),
    (re.compile(r"Intel\(R\) MPI Library.*?Version ([\d.]+)"), "Intel MPI"),
    (re.compile(r"HYDRA build details.*?Version: *([\w.]+)"), "MPICH"),
)
_SLURM = re.compile(r"^\S+ (\d\S*)\s*$")


@dataclass(frozen=True)
class Net:
    """An interface with an IPv4 address; `speed_mbit_s` is 0 where it has none or hides it."""

    name: str
    address: str
    mtu: int
    speed_mbit_s: int


@dataclass(frozen=True)
class Facts:
    """What one host said. `parts` are kinds of devices it has several of, by what they say."""

    name: str
    values: Mapping[str, str]
    devices: tuple[str, ...] = ()
    nets: tuple[Net, ...] = ()
    parts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    pcie: tuple[PcieDevice, ...] = ()

    def number(self, key: str) -> int:
        """Return a value as a number; 0 for one that the host did not say."""
        text = self.values.get(key, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


def read_facts(name: str, text: str) -> Facts:
    """Read the script's lines; lines of anybody else's are left out."""
    values: dict[str, str] = {}
    devices, nets, pcie = [], [], []
    parts: dict[str, Counter[str]] = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        value = value.strip()
        if key == "device":
            devices.append(value)
        elif key == "net":
            nets += _net(value)
        elif key == "pci":
            pcie += [device] if (device := read_device(value)) else []
        elif key in ("hca", "nvme"):
            parts.setdefault(key, Counter())[" ".join(value.split())] += 1
        elif equals and value:
            values[key] = told(key, value)
    return Facts(name, values, tuple(devices), tuple(nets), parts, tuple(pcie))


def told(key: str, text: str) -> str:
    """Return what a host says of one thing, in the same words on each host: versions bare."""
    if key == "slurm":
        found = _SLURM.match(text)
        return found[1] if found else UNKNOWN
    if key == "mpi":
        return next((f"{name} {m[1]}" for rule, name in _MPI if (m := rule.search(text))), UNKNOWN)
    if key == "transparent_hugepages":
        chosen = re.search(r"\[(\w+)\]", text)
        return chosen[1] if chosen else UNKNOWN
    if key in _PATTERNS or key in _OTHERS or key.startswith("runtime."):
        found = re.search(_PATTERNS.get(key, _VERSION), text)
        return next((each for each in found.groups() if each), UNKNOWN) if found else UNKNOWN
    return text


def _net(text: str) -> list[Net]:
    words = text.split()
    if len(words) != 4:
        return []
    name, address, mtu, speed = words
    if not (mtu.isascii() and mtu.isdigit() and len(mtu) < 9):
        return []
    known = speed if speed.isascii() and speed.isdigit() and len(speed) < 9 else "0"
    return [Net(name, address.partition("/")[0], int(mtu), int(known))]
