"""The files that make a virtual machine one particular machine, as an archive for its initrd.

The image's initrd puts what is below `new` into the root file system of a machine that never
booted, and what is below `lasting` there at every boot.
"""

import json
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

from hpcsite.lab.identity import hosts_file
from hpcsite.lab.qemu import command, cpio
from hpcsite.lab.qemu.cpio import File
from hpcsite.lab.spec import Machine
from hpcsite.lab.sshkeys import HOST_KEY

_TOP = "hpcsite-machine"
NEW, LASTING = f"{_TOP}/new", f"{_TOP}/lasting"
MANAGEMENT, FABRIC = "mgmt0", "fabric0"
# InfiniBand and RoCE fabrics have large frames: RDMA's own limit of 4096 bytes fits into these.
_MTU = 9000
_NVIDIA_MAJOR = 195  # Documentation/admin-guide/devices.txt
_PRIVATE = {"root": 0o700, "root/.ssh": 0o700}


@dataclass(frozen=True)
class Environment:
    """What every machine of a lab takes from its lab and from the computer."""

    network: IPv4Network
    proxy: str
    login_key: str  # public half


def link_file(name: str, mac: str) -> str:
    """Return the file that names an interface (systemd.link(5))."""
    return f"[Match]\nMACAddress={mac}\n\n[Link]\nName={name}\n"


def management_network() -> str:
    """Return the systemd-networkd file of the management interface.

    Nothing that a boot waits for needs it.
    """
    return (
        f"[Match]\nName={MANAGEMENT}\n\n[Link]\nRequiredForOnline=no\n\n"
        f"[Network]\nAddress={command.MANAGEMENT_ADDRESS}/24\n"
        f"Gateway={command.MANAGEMENT_GATEWAY}\nDNS={command.MANAGEMENT_RESOLVER}\n"
        "IPv6AcceptRA=no\nLLMNR=no\nMulticastDNS=no\n"
    )


def fabric_network(machine: Machine, network: IPv4Network) -> str:
    """Return the systemd-networkd file of the fabric interface."""
    return (
        f"[Match]\nName={FABRIC}\n\n[Link]\nMTUBytes={_MTU}\n\n"
        f"[Network]\nAddress={machine.address}/{network.prefixlen}\n"
        "IPv6AcceptRA=no\nLLMNR=no\nMulticastDNS=no\n"
    )


def devices_file(machine: Machine) -> str:
    """Return the file that makes the GPUs' device files at boot (tmpfiles.d(5)).

    No driver answers behind them.
    """
    return "".join(
        f"c {path} 0666 root root - {_NVIDIA_MAJOR}:{number}\n"
        for number, path in enumerate(machine.gpu_devices)
    )


def lasting(machine: Machine, environment: Environment, host_key: Path) -> list[File]:
    """Return what a machine must have however long it has lived: name, addresses, keys."""
    folder = "etc/systemd/network"
    public = host_key.with_name(f"{HOST_KEY}.pub")
    address = machine.address
    texts = {
        "etc/hostname": f"{machine.name}\n",
        f"{folder}/10-{MANAGEMENT}.link": link_file(MANAGEMENT, command.management_mac(address)),
        f"{folder}/10-{MANAGEMENT}.network": management_network(),
        f"{folder}/10-{FABRIC}.link": link_file(FABRIC, command.fabric_mac(address)),
        f"{folder}/10-{FABRIC}.network": fabric_network(machine, environment.network),
        # Empty where there are no GPUs: a machine may have had some.
        "etc/tmpfiles.d/hpcsite-gpus.conf": devices_file(machine),
        f"etc/ssh/{HOST_KEY}.pub": public.read_text(encoding="utf-8"),
    }
    secrets = {
        "root/.ssh/authorized_keys": f"{environment.login_key}\n",
        f"etc/ssh/{HOST_KEY}": host_key.read_text(encoding="utf-8"),
    }
    return [
        *(File(name, text.encode()) for name, text in texts.items()),
        *(File(name, text.encode(), 0o600) for name, text in secrets.items()),
    ]


def new(machine: Machine, environment: Environment, machine_id: str) -> list[File]:
    """Return what only a fresh machine gets; roles and the machine itself change it later."""
    files = [
        File("etc/machine-id", f"{machine_id}\n".encode(), 0o444),
        File("etc/hosts", hosts_file(machine).encode()),
    ]
    if environment.proxy:
        proxy = f'Acquire::http::Proxy "{environment.proxy}";\n'
        files.append(File("etc/apt/apt.conf.d/80proxy", proxy.encode()))
    return files


def archive(
    machine: Machine, environment: Environment, host_key: Path, *, machine_id: str
) -> bytes:
    """Return the archive to append to an image's initrd."""
    below = {
        LASTING: lasting(machine, environment, host_key),
        NEW: new(machine, environment, machine_id),
    }
    files = [
        File(f"{top}/{file.path}", file.data, file.mode)
        for top, files in below.items()
        for file in files
    ]
    modes = {f"{top}/{name}": mode for top in below for name, mode in _PRIVATE.items()}
    return cpio.archive(files, modes)


def fingerprint(machine: Machine, environment: Environment, host_key: Path) -> str:
    """Return everything that a machine takes up only at its start."""
    files = lasting(machine, environment, host_key)
    # The host key's secret half says no more than its public one.
    parts: dict[str, object] = {
        file.path: file.data.decode() for file in files if file.path != f"etc/ssh/{HOST_KEY}"
    }
    parts |= {"cpus": machine.cpus, "memory_mib": machine.memory_mib, "port": machine.ssh.port}
    return json.dumps(parts, sort_keys=True)
