"""Where a process is: its CPUs' NUMA nodes, RDMA devices near it, its way to other nodes.

Sent with `train.py` to nodes that have nothing of hpcsite: Python 3.8 and its standard library.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import socket
import struct
from pathlib import Path

SYS = Path("/sys")
SIOCGIFADDR = 0x8915


def around(gpu: str) -> dict[str, object]:
    """Say where this process is; `gpu` is the PCI address of its GPU, if it has one."""
    cpus = os.sched_getaffinity(0)
    return {
        "host": os.environ.get("SLURMD_NODENAME", ""),
        "name": socket.gethostname(),
        "visible": os.environ.get("CUDA_VISIBLE_DEVICES", ""),
        "given": os.environ.get("SLURM_STEP_GPUS", ""),
        "cpus": len(cpus),
        "cpu_numa": numa_of_cpus(cpus),
        "nics": nics(gpu)[:4],
    }


def numa_of_pci(pci: str) -> int:
    """NUMA node of a PCI device; -1 where the kernel does not say."""
    numa = read(SYS / "bus/pci/devices" / pci / "numa_node")
    return int(numa) if numa else -1


def interface_towards(host: str, port: int) -> str:
    """Own interface on the way to a host; nothing if it has none with an IPv4 address."""
    return interface_of(address_towards(host, port))


def read(path: Path) -> str:
    """Return what a file of /sys holds; nothing where it is not there."""
    with contextlib.suppress(OSError):
        return path.read_text().strip()
    return ""


def numa_of_cpus(cpus: set[int]) -> list[int]:
    """NUMA nodes of the CPUs that this rank may run on."""
    nodes = set()
    for cpu in cpus:
        for node in (SYS / f"devices/system/cpu/cpu{cpu}").glob("node[0-9]*"):
            nodes.add(int(node.name[4:]))
    return sorted(nodes)


def nics(near: str) -> list[str]:
    """Active RDMA devices; of those, the nearest to a PCI device first."""
    found = {}
    for device in sorted((SYS / "class/infiniband").glob("*")):
        states = [read(port / "state") for port in (device / "ports").glob("*")]
        if any("ACTIVE" in state for state in states):
            found[device.name] = os.path.realpath(device / "device")
    gpu = os.path.realpath(SYS / "bus/pci/devices" / near)
    return sorted(found, key=lambda name: -len(os.path.commonpath([found[name], gpu])))


def master(addresses: dict[str, str]) -> str:
    """Address of rank 0: it runs on the first node of the step, `gpu01` of `gpu[01-04,07]`."""
    nodes = os.environ.get("SLURM_STEP_NODELIST") or os.environ["SLURM_NODELIST"]
    first = re.match(r"(?:[^,\[]|\[[^\]]*\])+", nodes)
    if first is None:
        raise ValueError("SLURM_STEP_NODELIST names no node")
    name = re.sub(r"\[([^],-]+)[^]]*\]", r"\1", first[0])
    return addresses.get(name, name)


def address_towards(host: str, port: int) -> str:
    """Own address on the way to rank 0; nothing is sent."""
    with contextlib.suppress(OSError):
        family, kind, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.connect(where)
            return str(probe.getsockname()[0])
    return ""


def interface_of(address: str) -> str:
    """Return the interface that has an IPv4 address; nothing if none has it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):
                packed = struct.pack("256s", name.encode()[:15])
                found = fcntl.ioctl(asked.fileno(), SIOCGIFADDR, packed)[20:24]
                if socket.inet_ntoa(found) == address:
                    return name
    return ""
