"""The files that make a copy of the image one particular machine."""

import json
import os
import uuid
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

from hpcsite.errors import CouldNotRunError
from hpcsite.lab.spec import Machine
from hpcsite.lab.sshkeys import HOST_KEY

RESOLVER_MARK = "# Name servers of the computer that this machine runs on.\n"


@dataclass(frozen=True)
class Environment:
    """What every machine of a lab takes from its lab and from the computer."""

    network: IPv4Network
    mtu: int
    resolvers: tuple[str, ...]
    proxy: str
    login_key: str  # public half

    def resolv_conf(self) -> str:
        """Return the machines' /etc/resolv.conf."""
        return RESOLVER_MARK + "".join(f"nameserver {each}\n" for each in self.resolvers)


def network_file(machine: Machine, environment: Environment) -> str:
    """Return the systemd-networkd file for the machine's one interface."""
    network = environment.network
    return (
        f"[Match]\nName=host0\n\n[Link]\nMTUBytes={environment.mtu}\n\n"
        f"[Network]\nAddress={machine.address}/{network.prefixlen}\nGateway={network[1]}\n"
        "LLMNR=no\n"
    )


def hosts_file(machine: Machine) -> str:
    """Return /etc/hosts as a Debian installation with a fixed address writes it."""
    names = f"{machine.name}.{machine.domain} {machine.name}" if machine.domain else machine.name
    return (
        f"127.0.0.1\tlocalhost\n{machine.address}\t{names}\n\n"
        "::1\tlocalhost ip6-localhost ip6-loopback\nff02::1\tip6-allnodes\n"
    )


def fingerprint(machine: Machine, environment: Environment, host_key: Path) -> str:
    """Return everything that a machine takes up only at its start."""
    parts = {
        "address": str(machine.address),
        "domain": machine.domain,
        "network": str(environment.network),
        "login_key": environment.login_key,
        "host_key": host_key.with_name(f"{HOST_KEY}.pub").read_text(encoding="utf-8"),
        "devices": machine.gpu_devices,
    }
    return json.dumps(parts, sort_keys=True)


def write_all(root: Path, machine: Machine, environment: Environment, host_key: Path) -> None:
    """Write a new machine's files into its root."""
    write_lasting(root, machine, environment, host_key)
    put(root, "etc/machine-id", uuid.uuid4().hex + "\n", 0o444)
    put(root, "etc/hosts", hosts_file(machine))
    put(root, "etc/resolv.conf", environment.resolv_conf())
    if environment.proxy:
        proxy = f'Acquire::http::Proxy "{environment.proxy}";\n'
        put(root, "etc/apt/apt.conf.d/80proxy", proxy)


def write_lasting(root: Path, machine: Machine, environment: Environment, host_key: Path) -> None:
    """Write what a machine must have however long it has lived: name, address, keys."""
    put(root, "etc/hostname", f"{machine.name}\n")
    put(root, "etc/systemd/network/10-host0.network", network_file(machine, environment))
    put(root, "root/.ssh/authorized_keys", f"{environment.login_key}\n", 0o600)
    put(root, f"etc/ssh/{HOST_KEY}", host_key.read_text(encoding="utf-8"), 0o600)
    public = host_key.with_name(f"{HOST_KEY}.pub").read_text(encoding="utf-8")
    put(root, f"etc/ssh/{HOST_KEY}.pub", public)


def refresh_resolver(root: Path, environment: Environment) -> None:
    """Follow a change of the host's name servers, unless something in the machine took over."""
    path = root / "etc/resolv.conf"
    if path.is_symlink() or not path.is_file():
        return
    present = path.read_text(encoding="utf-8", errors="replace")
    wanted = environment.resolv_conf()
    if present.startswith(RESOLVER_MARK) and present != wanted:
        put(root, "etc/resolv.conf", wanted)


def inside(root: Path, name: str) -> Path:
    """Return a path below a machine's root.

    Raises:
        CouldNotRunError: a linked folder on the way would lead into this computer's own files.
    """
    path = root / name
    if not path.parent.resolve().is_relative_to(root.resolve()):
        raise CouldNotRunError(
            f"{path.parent} leads out of the machine's file system",
            hint="replace the machine by a fresh one: hpcsite lab reset",
        )
    return path


def put(root: Path, name: str, text: str, mode: int = 0o644) -> None:
    """Write a file below a machine's root.

    A file that is a link is replaced, never followed.
    """
    path = inside(root, name)
    path.parent.mkdir(mode=0o700 if path.parent.name == ".ssh" else 0o755, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        os.fchmod(fd, mode)
        file.write(text)
    part.replace(path)
