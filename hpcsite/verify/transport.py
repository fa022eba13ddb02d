"""Running commands where a user's would run: over ssh, bounded in time, nothing asked.

`Transport` is what checks need; tests answer it with recorded output. `SshTransport` keeps one
connection a host (OpenSSH's ControlMaster) and closes it at the end.
"""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from hpcsite.errors import CouldNotRunError
from hpcsite.site.connection import ssh_argv
from hpcsite.site.model import Host, Site

# sshd allows ten sessions a connection by default (MaxSessions); two are left for cleaning up.
MAX_SESSIONS = 8
# What a command may take beyond its own bound, for ssh and for `timeout` to end it.
GRACE_S = 12.0
SSH_FAILED = 255
TIMED_OUT = 124
# What timeout(1) answers when it had to kill, and a shell for any killed program.
KILLED = 137


@dataclass(frozen=True)
class Answer:
    """What a command did. `started` is seconds since the epoch on this computer's clock."""

    argv: tuple[str, ...]
    host: str
    user: str | None
    rc: int
    stdout: str
    stderr: str
    started: float
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether it ended with 0."""
        return self.rc == 0

    @property
    def complaint(self) -> str:
        """One line for a person: the last thing it said, else how it ended."""
        if self.rc == TIMED_OUT:
            return f"no answer within {self.seconds:.0f} s"
        said = [line.strip() for line in self.stderr.splitlines() if line.strip()]
        return said[-1] if said else f"exit code {self.rc}"


class InterruptedRunError(Exception):
    """The run was interrupted; whoever sees it stops at once."""


class UnreachableError(Exception):
    """A host could not be reached; the message says why."""


class Transport(Protocol):
    """Runs a command on a host."""

    def run(self, host: Host, argv: Sequence[str], *, user: str | None, timeout_s: float) -> Answer:
        """Run `argv` on `host` as `user`, or as the inventory's own user for None.

        Waits at most `timeout_s` seconds (then rc is 124). Raises `UnreachableError`,
        `InterruptedRunError`.
        """

    def interrupt(self) -> None:
        """End every command that runs; new ones raise until `resume`."""

    def resume(self) -> None:
        """Allow commands again, to clean up."""


@dataclass(frozen=True)
class Identity:
    """The ordinary user on the node that jobs are submitted from."""

    user: str
    home: str
    become: tuple[str, ...] = field(default=())

    def wrap(self, argv: Sequence[str]) -> list[str]:
        """Return the command as this user, in a login shell's environment (modules, PATH)."""
        environment = [f"HOME={self.home}", f"USER={self.user}", f"LOGNAME={self.user}"]
        # "/" is the one folder that every node has: srun starts its tasks where it was called.
        shell = ["bash", "-lc", 'export LC_ALL=C; cd /; exec "$@"', "hpcsite", *argv]
        return [*self.become, "env", *environment, *shell]


class SshTransport:
    """`Transport` over ssh. A context manager: its connections end with it."""

    def __init__(self, site: Site, identities: dict[str, Identity]) -> None:
        self._site = site
        self._identities = identities
        self._sockets = Path(tempfile.mkdtemp(prefix="hpc-"))
        self._sessions = threading.BoundedSemaphore(MAX_SESSIONS)
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._hosts: dict[str, Host] = {}
        self._stopped = False

    def __enter__(self) -> "SshTransport":
        return self

    def __exit__(self, *_: object) -> None:
        for host in self._hosts.values():
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(
                    [*self._options(host)[:-2], "-O", "exit", *self._options(host)[-2:]],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=5,
                    check=False,
                )
        shutil.rmtree(self._sockets, ignore_errors=True)

    def run(self, host: Host, argv: Sequence[str], *, user: str | None, timeout_s: float) -> Answer:
        """See `Transport`."""
        plain = tuple(argv)
        # The far side bounds the command too, so that nothing lives on when the line breaks.
        bounded = ["timeout", "-k", "5", f"{timeout_s:.0f}", *plain]
        if user is None:
            remote = ["env", "LC_ALL=C", *bounded]
        else:
            remote = self._identities[user].wrap(bounded)
        with self._sessions:
            started, begin = time.time(), time.monotonic()
            rc, stdout, stderr = self._ssh(host, shlex.join(remote), timeout_s + GRACE_S)
            seconds = time.monotonic() - begin
        if rc == KILLED and seconds >= timeout_s:
            rc = TIMED_OUT
        if rc == SSH_FAILED and not stdout:
            raise UnreachableError(f"{host.name}: {_last_line(stderr) or 'ssh failed'}")
        return Answer(plain, host.name, user, rc, stdout, stderr, started, seconds)

    def interrupt(self) -> None:
        """See `Transport`."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                _end(process, signal.SIGTERM)

    def resume(self) -> None:
        """See `Transport`."""
        with self._lock:
            self._stopped = False

    def _ssh(self, host: Host, remote: str, timeout_s: float) -> tuple[int, str, str]:
        process = self._start([*self._options(host), remote])
        try:
            stdout, stderr = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            _end(process, signal.SIGKILL)
            stdout, stderr = process.communicate()
            return TIMED_OUT, stdout, stderr
        finally:
            with self._lock:
                self._running.discard(process)
                stopped = self._stopped
        if stopped:
            raise InterruptedRunError
        return process.returncode, stdout, stderr

    def _start(self, argv: list[str]) -> "subprocess.Popen[str]":
        with self._lock:
            if self._stopped:
                raise InterruptedRunError
            try:
                process = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    errors="replace",
                    # Ctrl-C in the terminal must not end the connection that cleans up.
                    start_new_session=True,
                )
            except FileNotFoundError as error:
                raise CouldNotRunError(
                    "ssh is not installed", hint="install the package openssh-client"
                ) from error
            self._running.add(process)
            return process

    def _options(self, host: Host) -> list[str]:
        self._hosts[host.name] = host
        ssh, *rest = ssh_argv(self._site, host)
        # OpenSSH takes the first value of an option, so ours stand before the site's.
        own = ["ControlMaster=auto", f"ControlPath={self._sockets}/%C", "ControlPersist=120"]
        return [ssh, "-T", *(word for option in own for word in ("-o", option)), *rest]


def _end(process: "subprocess.Popen[str]", number: signal.Signals) -> None:
    """End a process with all that it started (a jump host's ssh); it leads its own group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
