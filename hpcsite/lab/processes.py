"""Finding and ending the processes of machines.

No pid is ever stored: a machine's processes are found by what only they have (a command line that
names its folder, or its overlay as their root), and signalled through a pidfd, so that a recycled
pid can neither be mistaken for one nor be killed.
"""

import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from hpcsite.image.mounts import parse_mountinfo

_PROC = Path("/proc")


def _pids() -> Iterator[int]:
    return (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdecimal())


def command_line(pid: int) -> list[str]:
    """Return a process's arguments; empty if it has ended or is a zombie."""
    try:
        raw = (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return []
    return raw.decode(errors="replace").rstrip("\0").split("\0") if raw else []


def parent(pid: int) -> int:
    """Return a process's parent, 0 if it has ended."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    # The command's name stands in parentheses and may hold anything, a parenthesis too.
    return int(stat.rpartition(")")[2].split()[1])


def supervisor(argument: str) -> int | None:
    """Return the systemd-nspawn process that was given this argument, if there is one."""
    found = {pid for pid in _pids() if is_supervisor(pid, argument)}
    # While it starts, its child has the same command line.
    return next((pid for pid in sorted(found) if parent(pid) not in found), None)


def is_supervisor(pid: int, argument: str) -> bool:
    """Tell whether a process is a systemd-nspawn with this argument."""
    argv = command_line(pid)
    return bool(argv) and Path(argv[0]).name == "systemd-nspawn" and argument in argv


def find(is_it: Callable[[int], bool]) -> list[int]:
    """Return the processes that are the ones meant, by number."""
    return sorted(pid for pid in _pids() if is_it(pid))


def children(pid: int) -> list[int]:
    """Return the processes whose parent is this one."""
    return [other for other in _pids() if parent(other) == pid]


def has_root(pid: int, upper: Path) -> bool:
    """Tell whether a process's root is the overlay with this upper layer."""
    try:
        text = (_PROC / str(pid) / "mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    option = f"upperdir={upper}"
    return any(
        mount.point == Path("/") and option in mount.options.split(",")
        for mount in parse_mountinfo(text)
    )


def inside(upper: Path) -> list[int]:
    """Return the processes whose root is the overlay with this upper layer."""
    return [pid for pid in _pids() if has_root(pid, upper)]


def send(pid: int, number: int, is_it: Callable[[int], bool]) -> int | None:
    """Signal a process if it is still the one that is meant.

    Returns:
        An open pidfd to wait on, or None if the process is not (or no longer) that one.
    """
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return None
    # The pidfd is bound now; what is checked next is checked of that very process.
    if is_it(pid):
        try:
            signal.pidfd_send_signal(fd, number)
        except OSError:
            pass
        else:
            return fd
    os.close(fd)
    return None


def end(pid: int, number: int, is_it: Callable[[int], bool], seconds: float) -> bool:
    """Signal a process and wait; tell whether it is gone."""
    fd = send(pid, number, is_it)
    if fd is None:
        return True
    try:
        return bool(select.select([fd], [], [], seconds)[0])
    finally:
        os.close(fd)


def kill_inside(upper: Path, seconds: float = 5.0) -> None:
    """Kill every process whose root is this overlay, and wait until all are gone."""
    deadline = time.monotonic() + seconds
    while (pids := inside(upper)) and time.monotonic() < deadline:
        for pid in pids:
            end(pid, signal.SIGKILL, lambda found: has_root(found, upper), 0.5)
