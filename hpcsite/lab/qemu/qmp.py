"""Talking to a running qemu: QMP, JSON lines over a unix socket (docs/interop/qmp-spec)."""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from hpcsite.errors import CouldNotRunError


class Monitor:
    """An open conversation."""

    def __init__(self, link: socket.socket, answers: TextIO) -> None:
        self._link = link
        self._answers = answers
        self._read()  # the greeting
        self.execute("qmp_capabilities")

    def execute(self, command: str, **arguments: object) -> object:
        """Run a command and return its answer.

        Raises:
            CouldNotRunError: qemu refuses it, or ends.
        """
        try:
            question = json.dumps({"execute": command, "arguments": arguments})
            self._link.sendall(f"{question}\n".encode())
            answer = self._read()
        except OSError as error:
            raise CouldNotRunError(f"qemu does not answer to `{command}`: {error}") from error
        if "error" in answer:
            raise CouldNotRunError(f"qemu refuses `{command}`: {answer['error'].get('desc')}")
        return answer["return"]

    def _read(self) -> dict[str, Any]:
        while line := self._answers.readline():
            answer: dict[str, Any] = json.loads(line)
            if "event" not in answer:  # events come in between whenever they please
                return answer
        raise ConnectionError("it ended")


@contextmanager
def connected(folder: Path, name: str, seconds: float) -> Iterator[Monitor]:
    """Open a conversation with the qemu behind a socket of a folder.

    Raises:
        CouldNotRunError: none listens there, or it is silent for that long.
    """
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(seconds)
        # By the folder's descriptor: its own path may be too long for a socket.
        fd = -1
        try:
            fd = os.open(folder, os.O_PATH | os.O_DIRECTORY)
            link.connect(f"/proc/self/fd/{fd}/{name}")
            with link.makefile(encoding="utf-8") as answers:
                yield Monitor(link, answers)
        except OSError as error:
            raise CouldNotRunError(f"qemu does not answer at {folder / name}: {error}") from error
        finally:
            if fd >= 0:
                os.close(fd)
