"""Runs on one host and does to shared folders what it is told, one JSON line a request.

Started by `storage_driver`: on compute nodes by srun, on the submit host by itself. It stands
alone but for `storage_steps`, which is sent with it, since nodes have nothing of hpcsite: Python
3.8 and its standard library are all it needs.

Whatever touches a shared folder is done by a child that is killed when it takes too long: a
server that does not answer makes a process wait for ever (nfs(5): mounts are `hard`), but a
fatal signal ends the wait.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import shutil
import signal
import sys
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcsite.verify.programs.storage_steps import NAME, OPERATIONS, lock, place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# slurmstepd hands on lines up to 1024 bytes whole.
PIECE = 800
holders: dict[str, tuple[int, int]] = {}
made: list[Path] = []


def answer(request: dict[str, Any], said: dict[str, Any]) -> None:
    """Print an answer, in pieces that no other host's output comes between."""
    text = json.dumps({**said, "id": request["id"], "host": NAME})
    packed = base64.b64encode(zlib.compress(text.encode())).decode()
    for at in range(0, len(packed), PIECE):
        end = "." if at + PIECE >= len(packed) else "+"
        os.write(1, f"@ {NAME} {packed[at : at + PIECE]}{end}\n".encode())


def hold(request: dict[str, Any], told: int) -> None:
    """Hold a lock until told, in a child of its own."""
    with place(request).open("w+b") as file:
        lock(file, request["kind"], fcntl.LOCK_EX)
        answer(request, {"locked": True})
        os.read(told, 1)


def child_of(request: dict[str, Any], work: Callable[[], None]) -> int:
    """Start a child that does the work and answers."""
    child = os.fork()
    if child:
        return child
    try:
        # The group is the child's own, so that a program that it runs is ended with it.
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        work()
    except OSError as error:
        answer(request, {"errno": error.errno, "error": error.strerror or str(error)})
    except Exception as error:  # noqa: BLE001 - told to whoever asked
        answer(request, {"error": f"{type(error).__name__}: {error}"})
    finally:
        os._exit(0)


def ended(child: int, seconds: float) -> bool:
    """Wait for a child; one that does not end in time is killed, and not waited for long."""
    end, killed = time.monotonic() + seconds, False
    while not os.waitpid(child, os.WNOHANG)[0]:
        if time.monotonic() > end:
            if killed:
                return False
            kill(child)
            end, killed = time.monotonic() + 2, True
        time.sleep(0.01)
    return not killed


def kill(child: int) -> None:
    """End a child with all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)


def serve(request: dict[str, Any]) -> None:
    """Do what one request asks for."""
    op, seconds = request["op"], request["timeout_s"]
    if op == "hold":
        told, tell = os.pipe()
        holders[request["key"]] = (child_of(request, lambda: hold(request, told)), tell)
        os.close(told)
    elif op in ("release", "kill"):
        answer(request, let_go(request["key"], seconds, at_once=op == "kill"))
    else:
        if op == "make":
            made.append(Path(request["folder"]))
        child = child_of(request, lambda: answer(request, OPERATIONS[op](request)))
        if not ended(child, seconds):
            answer(request, {"slow": seconds})


def let_go(key: str, seconds: float, *, at_once: bool) -> dict[str, Any]:
    """Have a lock released, by its holder or by its holder's death."""
    child, tell = holders.pop(key, (0, -1))
    if not child:
        return {"error": "no lock was held"}
    if at_once:
        kill(child)
    with contextlib.suppress(BrokenPipeError):
        # A word, since the pipe stays open in the child, which has a copy of this end.
        os.write(tell, b".")
    os.close(tell)
    return {"released": True} if ended(child, seconds) else {"slow": seconds}


def requests() -> Iterator[dict[str, Any]]:
    """Read the requests that this host has a part in, until there are no more."""
    rest = b""
    while True:
        data = os.read(0, 65536)
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            request = json.loads(line)
            if NAME in request["hosts"]:
                yield request


def leave() -> None:
    """Release what is held, and remove what was made."""
    for key in list(holders):
        let_go(key, 2, at_once=True)
    for folder in made:
        child = os.fork()
        if not child:
            shutil.rmtree(folder, ignore_errors=True)
            os._exit(0)
        ended(child, 25)


def stop(*_: object) -> None:
    """End because Slurm ends the job, which leaves time to clean up (slurm.conf(5): KillWait)."""
    raise SystemExit(1)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)
    answer({"id": "hello"}, {"python": sys.version.split()[0]})
    try:
        for asked in requests():
            serve(asked)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        leave()
        answer({"id": "bye"}, {})
