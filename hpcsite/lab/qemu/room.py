"""Whether this computer has what virtual machines need before they start: ports and memory."""

import errno
import re
import socket
from collections.abc import Collection, Iterable
from pathlib import Path

from hpcsite.errors import CouldNotRunError, Problem
from hpcsite.lab import processes
from hpcsite.lab.spec import Machine

_PROC = Path("/proc")
_LISTEN = "0A"  # a state of include/net/tcp_states.h
# What qemu itself takes besides a machine's memory: devices, and translated code under emulation.
_OVERHEAD_MIB = 128


class PortsError(CouldNotRunError):
    """Ports are taken; carries a problem for each."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(problem.message for problem in problems))
        self._problems = problems

    @property
    def problems(self) -> list[Problem]:
        """One for each machine, in inventory order."""
        return self._problems


def require(machines: Collection[Machine]) -> None:
    """Check that what these machines, which are off, need is free.

    Raises:
        HpcsiteError: it is not.
    """
    if taken := port_problems(machines):
        raise PortsError(taken)
    require_memory(machines)


def port_problems(machines: Iterable[Machine]) -> list[Problem]:
    """Return a problem for each machine whose ssh port is taken."""
    found = []
    for node in machines:
        reason = _why_taken(str(node.ssh.address), node.ssh.port)
        if reason:
            found.append(
                Problem(
                    f"{node.name}: port {node.ssh.port} of {node.ssh.address}, by which ssh is to "
                    f"reach the machine, {reason}",
                    hint=f"end that program, or give {node.name} another `ansible_port`",
                )
            )
    return found


def require_memory(machines: Collection[Machine]) -> None:
    """Check that the memory of these machines, which are off, is free.

    Raises:
        CouldNotRunError: it is not.
    """
    needed = sum(node.memory_mib + _OVERHEAD_MIB for node in machines)
    free = available_mib(Path("/proc/meminfo").read_text(encoding="utf-8"))
    if free is not None and free < needed:
        names = ", ".join(f"{node.name} {node.memory_mib}" for node in machines)
        raise CouldNotRunError(
            f"too little memory: {needed} MiB are needed to start machines ({names}; and "
            f"{_OVERHEAD_MIB} for each), {free} MiB are available",
            hint="end other programs, or lower `memory_mib` in site_lab or a host's "
            "`site_lab_memory_mib`",
        )


def available_mib(meminfo: str) -> int | None:
    """Read /proc/meminfo (proc(5)): what can be used without swapping."""
    match = re.search(r"^MemAvailable:\s+(\d+) kB$", meminfo, re.MULTILINE)
    return int(match[1]) // 1024 if match else None


def listener(tables: Iterable[str], port: int) -> int | None:
    """Return the inode of what listens on a port, from the texts of /proc/net/tcp and tcp6."""
    for table in tables:
        for line in table.splitlines()[1:]:
            fields = line.split()
            if len(fields) > 9 and fields[3] == _LISTEN and _port_of(fields[1]) == port:
                return int(fields[9])
    return None


def _port_of(field: str) -> int:
    return int(field.rpartition(":")[2], 16)


def _why_taken(address: str, port: int) -> str:
    with socket.socket() as probe:
        # As qemu does: connections of a listener that is gone do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
            probe.listen(1)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return f"is taken by {_holder(port)}"
            return f"cannot be used: {error.strerror}"
    return ""


def _holder(port: int) -> str:
    tables = [
        path.read_text(encoding="utf-8")
        for path in (_PROC / "net" / "tcp", _PROC / "net" / "tcp6")
        if path.exists()
    ]
    inode = listener(tables, port)
    if inode is None:
        return "another program"
    pids = processes.find(lambda pid: _holds(pid, inode))
    if not pids:
        return "a program of another user"
    command = processes.command_line(pids[0])
    name = Path(command[0]).name if command else "a program"
    return f"{name} (process {pids[0]})"


def _holds(pid: int, inode: int) -> bool:
    try:
        return any(
            path.readlink().name == f"socket:[{inode}]"
            for path in (_PROC / str(pid) / "fd").iterdir()
        )
    except OSError:  # another user's, or gone
        return False
