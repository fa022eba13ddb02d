"""Runs on the submit host: starts an agent on each host, and leads them step by step.

A step begins when every host has ended the one before it, so that what one host writes is there
when another is told to read. Requests and answers go over standard input and output of srun: no
port is opened, and nothing but Slurm is needed. One JSON line for each answer is printed.
"""

from __future__ import annotations

import base64
import contextlib
import json
import queue
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

HERE = Path(__file__).resolve()
# Hosts that run an agent have no hpcsite to import from: its one module is sent along.
PROGRAM = """
import sys, types
steps = types.ModuleType("hpcsite.verify.programs.storage_steps")
sys.modules[steps.__name__] = steps
exec({steps!r}, steps.__dict__)
exec({agent!r})
"""
GRACE_S = 8
REMOVAL_S = 60


class Crew:
    """The agents; `live` are the hosts that answer."""

    def __init__(self) -> None:
        self.answers: queue.Queue[dict[str, Any] | set[str]] = queue.Queue()
        self.processes: list[tuple[subprocess.Popen[bytes], list[bytes]]] = []
        self.open: list[set[str]] = []
        self.live: set[str] = set()

    def start(self, argv: Sequence[str], hosts: Iterable[str]) -> None:
        """Start a program that starts the agents of some hosts."""
        pipe = subprocess.PIPE
        process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe)
        said: list[bytes] = []
        self.processes.append((process, said))
        own = set(hosts)
        self.open.append(own)
        threading.Thread(target=self.read, args=(process.stdout, own), daemon=True).start()
        threading.Thread(target=said.extend, args=(process.stderr,), daemon=True).start()

    def read(self, stream: IO[bytes], hosts: set[str]) -> None:
        """Put the pieces of each host's answers together."""
        parts: dict[str, str] = {}
        for line in stream:
            mark, _, rest = line.decode("ascii", "replace").strip().partition(" ")
            host, _, piece = rest.partition(" ")
            if mark != "@" or not piece:
                continue
            parts[host] = parts.get(host, "") + piece[:-1]
            if piece[-1] == ".":
                packed = parts.pop(host)
                with contextlib.suppress(ValueError, zlib.error):
                    self.answers.put(json.loads(zlib.decompress(base64.b64decode(packed))))
        self.answers.put(hosts)

    def ask(self, request: dict[str, Any]) -> None:
        """Send a request to all; each reads whether it has a part in it."""
        line = json.dumps(request).encode() + b"\n"
        for process, _ in self.processes:
            with contextlib.suppress(OSError, ValueError):
                stdin = process.stdin
                if stdin:
                    stdin.write(line)
                    stdin.flush()

    def collect(self, step: str, hosts: Iterable[str], seconds: float) -> set[str]:
        """Print the answers of hosts to a step; which hosts gave none in time."""
        missing, end = set(hosts), time.monotonic() + seconds
        while any(missing & own for own in self.open):
            try:
                said = self.answers.get(timeout=max(end - time.monotonic(), 0))
            except queue.Empty:
                break
            if isinstance(said, set):
                self.open.remove(said)
            elif said.get("id") == step:
                missing.discard(said["host"])
                tell(said)
        return missing

    def dismiss(self) -> None:
        """End the agents, which remove what they made; how the programs ended."""
        for process, _ in self.processes:
            with contextlib.suppress(OSError):
                if process.stdin:
                    process.stdin.close()
        end = time.monotonic() + REMOVAL_S
        for number, (process, said) in enumerate(self.processes):
            try:
                process.wait(max(end - time.monotonic(), 1))
            except subprocess.TimeoutExpired:
                process.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(10)
            text = b"".join(said).decode("utf-8", "replace")[-4000:]
            tell({"id": "end", "starter": number, "rc": process.returncode, "stderr": text})


def tell(said: dict[str, Any]) -> None:
    """Print a line at once."""
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


def lead(crew: Crew, task: dict[str, Any]) -> None:
    """Lead the agents through all steps."""
    wanted = set(task["hosts"])
    silent = crew.collect("hello", wanted, task["hello_s"])
    crew.live = wanted - silent
    if silent:
        tell({"id": "silent", "hosts": sorted(silent)})
    end = time.monotonic() + task["lasts_s"]
    for step in task["steps"]:
        if time.monotonic() > end:
            tell({"id": "late", "step": step["id"]})
            return
        ring = [host for host in step.pop("ring") if host in crew.live]
        only = step.pop("only", None)
        hosts = [host for host in ring if only is None or ring.index(host) in only]
        if len(ring) < step.pop("least", 1) or not hosts:
            continue
        crew.ask(dict(step, ring=ring, hosts=hosts))
        silent = crew.collect(step["id"], hosts, step["timeout_s"] + GRACE_S)
        for host in sorted(silent):
            tell({"id": step["id"], "host": host, "silent": True})
        if step["op"] != "hold":
            crew.live -= silent
        if not crew.open:
            return


def main() -> None:
    """Read the task, and see it done."""
    task = json.loads(zlib.decompress(base64.b64decode(sys.argv[1])))
    crew = Crew()
    steps, agent = (
        HERE.with_name(f"storage_{name}.py").read_text(encoding="utf-8")
        for name in ("steps", "agent")
    )
    program = PROGRAM.format(steps=steps, agent=agent)
    try:
        for one in task["starters"]:
            crew.start([*one["argv"], "python3", "-c", program], one["hosts"])
        if task["here"]:
            crew.start(["python3", "-c", program, task["here"]], [task["here"]])
        lead(crew, task)
    finally:
        crew.dismiss()


if __name__ == "__main__":
    main()
