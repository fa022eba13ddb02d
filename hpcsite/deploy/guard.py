"""Runs one command and makes sure that nothing of it is left, whatever ends first.

Started as a script, with the standard library only: `python guard.py LOCK WORK COMMAND…`.
Ansible's workers, mitogen's multiplexer and ssh's masters each open a session of their own, so
killing a process group misses them. The guard is their subreaper (prctl(2)), which makes every
orphan its child, and is told by the kernel when the process that started it dies.

It holds LOCK as long as anything runs. A deploy that was killed leaves it held for the seconds
that Ansible needs to end, and the next deploy's guard waits for that. WORK is the folder of the
run: the guard's pid stands in `guard.pid` while it runs, and `tmp`, where Ansible renders files
before it copies them, is removed at the end.

A first SIGTERM, SIGINT or SIGHUP asks the command to end, as Ctrl-C would; a second one, or
`GRACE_S` seconds, kills all that is left.
"""

import contextlib
import ctypes
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

PID_FILE = "guard.pid"
TEMPORARY = "tmp"
GRACE_S = 8.0
LEFTOVER_GRACE_S = 1.0
LOCK_WAIT_S = 30.0
EX_TEMPFAIL = 75
_TICK_S = 1.0
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_STOP = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_WATCHED = {*_STOP, signal.SIGCHLD}


def main(argv: list[str]) -> int:
    """Run the command and return its exit code, 128 + n if a signal ended it."""
    lock_file, work, *command = argv
    starter = os.getppid()
    signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    for number in _STOP:
        # The starter may ignore a signal (pexpect ignores SIGHUP); an ignored one is never seen.
        signal.signal(number, signal.SIG_DFL)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != starter:
        return 128 + signal.SIGTERM
    # First of all: who wants to end a run that still waits finds the guard by this.
    pid_file = Path(work) / PID_FILE
    pid_file.write_text(str(os.getpid()), encoding="ascii")
    lock = Path(lock_file).open("ab")  # noqa: SIM115 - held until this process ends
    if not _locked(lock.fileno()):
        sys.stderr.write(f"an earlier run still holds {lock_file}\n")
        pid_file.unlink(missing_ok=True)
        return EX_TEMPFAIL
    child = subprocess.Popen(
        command,
        preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, _WATCHED),
    )
    code = _wait(child)
    _end_leftovers()
    pid_file.unlink(missing_ok=True)
    shutil.rmtree(Path(work) / TEMPORARY, ignore_errors=True)
    return code if code >= 0 else 128 - code


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _locked(descriptor: int) -> bool:
    """Take the lock; False when an earlier run still has it after `LOCK_WAIT_S`, or on a stop."""
    deadline = time.monotonic() + LOCK_WAIT_S
    while True:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        if time.monotonic() >= deadline or signal.sigtimedwait(_STOP, 0.1) is not None:
            return False


def _wait(child: "subprocess.Popen[bytes]") -> int:
    """Wait for the command; pass a request to stop on, and kill when it is not heeded."""
    deadline: float | None = None
    while child.poll() is None:
        caught = signal.sigtimedwait(_WATCHED, _TICK_S)
        if caught is not None and caught.si_signo in _STOP:
            if deadline is None:
                child.send_signal(signal.SIGINT)
                deadline = time.monotonic() + GRACE_S
            else:
                deadline = 0.0
        if deadline is not None and time.monotonic() >= deadline:
            _signal_all(descendants(os.getpid()), signal.SIGKILL)
        _reap(keep=child.pid)
    return child.returncode


def _end_leftovers() -> None:
    """End what the command left running: asked first, killed after `LEFTOVER_GRACE_S`."""
    _signal_all(descendants(os.getpid()), signal.SIGTERM)
    deadline = time.monotonic() + LEFTOVER_GRACE_S
    while left := descendants(os.getpid()):
        if time.monotonic() >= deadline:
            _signal_all(left, signal.SIGKILL)
        _reap()
        time.sleep(0.02)


def _reap(keep: int | None = None) -> None:
    """Collect dead orphans, but leave the command itself to `Popen`."""
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    with contextlib.suppress(ChildProcessError):
        while (dead := os.waitid(os.P_ALL, 0, options)) and dead.si_pid != keep:
            os.waitpid(dead.si_pid, 0)


def _signal_all(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def descendants(root: int) -> list[int]:
    """Every process below `root`, from /proc."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                # proc(5): the name in parentheses may hold anything, the ppid is 2 words after it.
                stat = (entry / "stat").read_text(errors="replace")
                parent = int(stat.rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found: list[int] = []
    todo = [root]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
