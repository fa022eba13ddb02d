"""Waiting until machines can be logged in to."""

import socket
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hpcsite.image import tools
from hpcsite.lab import sshkeys

_SSH_PORT = 22
_POLL_SECONDS = 0.05
_LOGIN_SECONDS = 10


def answers(lab_files: Path, address: str, command: str = "true") -> bool:
    """Tell whether root can log in with the lab's key, to the host key that is known."""
    if not _port_open(address):
        return False
    argv = [*sshkeys.ssh_command(lab_files, address), command]
    try:
        return (
            subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=_LOGIN_SECONDS,
                env={"PATH": tools.search_path(), "LC_ALL": "C.UTF-8"},
            ).returncode
            == 0
        )
    except subprocess.TimeoutExpired:
        return False


@dataclass(frozen=True)
class Waiter:
    """Waits for logins until a deadline, or until told to stop."""

    lab_files: Path
    seconds: float
    stopped: threading.Event

    def wait(self, address: str, alive: Callable[[], bool]) -> bool:
        """Tell whether the machine answered before the time was up or it died."""
        deadline = time.monotonic() + self.seconds
        while not self.stopped.is_set() and time.monotonic() < deadline:
            if answers(self.lab_files, address):
                return True
            if not alive():
                return False
            self.stopped.wait(_POLL_SECONDS)
        return False


def _port_open(address: str) -> bool:
    try:
        with socket.create_connection((address, _SSH_PORT), timeout=1.0):
            return True
    except OSError:
        return False
