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
from hpcsite.lab.spec import Endpoint

_POLL_SECONDS = 0.1
_BANNER_SECONDS = 3.0
_ASK_SECONDS = 20.0
_LOGIN_SECONDS = 10
_GREETING = b"SSH-"


def answers(lab_files: Path, endpoint: Endpoint, *, login_seconds: int = _LOGIN_SECONDS) -> bool:
    """Tell whether root can log in with the lab's key, to the host key that is known."""
    if not _greets(endpoint):
        return False
    argv = [*sshkeys.ssh_command(lab_files, endpoint, seconds=login_seconds), "true"]
    try:
        return (
            subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=2 * login_seconds,
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

    def wait(
        self, endpoint: Endpoint, *, alive: Callable[[], bool], ready: Callable[[], bool]
    ) -> bool:
        """Tell whether the machine answered before the time was up or it died.

        It is asked when it seems `ready`, and now and then in any case: each question to a
        forwarded port waits there for the machine, which would find all of them at once.
        """
        deadline = time.monotonic() + self.seconds
        # Whoever boots slowly logs in slowly.
        login_seconds = max(_LOGIN_SECONDS, int(self.seconds // 10))
        asked = time.monotonic()
        while not self.stopped.is_set() and time.monotonic() < deadline:
            if ready() or time.monotonic() > asked + _ASK_SECONDS:
                if answers(self.lab_files, endpoint, login_seconds=login_seconds):
                    return True
                asked = time.monotonic()
            if not alive():
                return False
            self.stopped.wait(_POLL_SECONDS)
        return False


def _greets(endpoint: Endpoint) -> bool:
    """Tell whether an ssh server speaks.

    An open port alone says nothing: a forwarded one is open before its machine boots.
    """
    try:
        place = (str(endpoint.address), endpoint.port)
        with socket.create_connection(place, timeout=_BANNER_SECONDS) as link:
            return link.recv(len(_GREETING)) == _GREETING
    except OSError:
        return False
