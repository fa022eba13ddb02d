"""TCP between two nodes, one task on each: latency, then bandwidth each way.

Arguments: the node that listens, its address, seconds of each bandwidth test. Needs nothing but
Python 3.7; run as text by `srun ... python3 -c`, so it imports nothing of hpcsite's.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import struct
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BLOCK = 64 * 1024
PINGS = 200
# What a side waits for the other one, which Slurm may start later, and for a slow link to drain.
PATIENCE_S = 40
BUFFER = 1024 * 1024
MORE, LAST = b"m", b"l"
TRIES = 5


def receive(link: socket.socket, count: int) -> bytes:
    """Return exactly so many bytes; raises `EOFError` where the other side ends before."""
    parts: list[bytes] = []
    missing = count
    while missing:
        part = link.recv(min(missing, BUFFER))
        if not part:
            raise EOFError("the other side closed the connection")
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def prepared(link: socket.socket) -> socket.socket:
    """Set what both ends need."""
    link.settimeout(PATIENCE_S)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        link.setsockopt(socket.SOL_SOCKET, option, BUFFER)
    return link


def send_for(link: socket.socket, seconds: float) -> float:
    """Send blocks for so long; the answer is what the other side measured, in Gb/s."""
    block = MORE + bytes(BLOCK)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        link.sendall(block)
    link.sendall(LAST + bytes(BLOCK))
    return float(struct.unpack("!d", receive(link, 8))[0])


def receive_all(link: socket.socket) -> float:
    """Receive blocks to the last, tell the rate, and return it."""
    begin = 0.0
    count = 0
    while True:
        head = receive(link, 1 + BLOCK)[:1]
        # The first block has waited for both sides to begin.
        if not begin:
            begin = time.monotonic()
        else:
            count += 1 + BLOCK
        if head == LAST:
            break
    elapsed = max(time.monotonic() - begin, 1e-9)
    rate = count * 8 / elapsed / 1e9
    link.sendall(struct.pack("!d", rate))
    return rate


def serve(address: str, token: bytes, ports: Sequence[int], seconds: float) -> None:
    """Listen for the other side, and do its tests with it."""
    family = socket.getaddrinfo(address, None, 0, socket.SOCK_STREAM)[0][0]
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        listener.setsockopt(socket.SOL_SOCKET, option, BUFFER)
    for number, port in enumerate(ports):
        try:
            listener.bind((address, port))
            break
        except OSError:
            if number == len(ports) - 1:
                raise
    listener.listen(5)
    listener.settimeout(PATIENCE_S)
    while True:
        link = prepared(listener.accept()[0])
        # Somebody else may knock here.
        if receive(link, len(token)) == token:
            break
        link.close()
    link.sendall(token)
    for _ in range(PINGS):
        link.sendall(receive(link, 1))
    receive_all(link)
    send_for(link, seconds)


def call(address: str, token: bytes, ports: Sequence[int]) -> socket.socket:
    """Return a connection to the other side, which may not listen yet."""
    end = time.monotonic() + PATIENCE_S
    said: Exception | None = None
    while time.monotonic() < end:
        for port in ports:
            try:
                link = prepared(socket.create_connection((address, port), timeout=5))
                link.sendall(token)
                if receive(link, len(token)) == token:
                    return link
                link.close()
            except (OSError, EOFError) as error:
                said = error
        time.sleep(0.2)
    raise OSError(f"no connection to {address}: {said}")


def measure(link: socket.socket, seconds: float) -> dict[str, float]:
    """Return the figures of one pair."""
    times: list[float] = []
    for _ in range(PINGS):
        begin = time.monotonic()
        link.sendall(b"p")
        receive(link, 1)
        times.append(time.monotonic() - begin)
    there = send_for(link, seconds)
    back = receive_all(link)
    return {
        # There and back is two ways.
        "latency_us": statistics.median(times) / 2 * 1e6,
        "to_gbit_s": there,
        "from_gbit_s": back,
    }


def say(what: Mapping[str, object]) -> None:
    """Print an object in one line."""
    sys.stdout.write(json.dumps(what) + "\n")


def main() -> int:
    """Be the side that this node is."""
    server, address, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    job = os.environ["SLURM_JOB_ID"]
    token = f"hpcsite {job:>12}".encode()
    # Beside perftest's, and where no system keeps its outgoing connections.
    first = 18000 + int(job) % 600
    ports = [first + number for number in range(TRIES)]
    try:
        if os.environ["SLURMD_NODENAME"] == server:
            serve(address, token, ports, seconds)
        else:
            say(measure(call(address, token, ports), seconds))
    except (OSError, EOFError) as error:
        say({"error": str(error) or type(error).__name__})
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
