"""Ports and memory are looked at before anything starts."""

import os
import socket
from ipaddress import IPv4Address

import pytest

from hpcsite.errors import CouldNotRunError
from hpcsite.lab.qemu import room
from hpcsite.lab.spec import Endpoint, Machine

LOOPBACK = IPv4Address("127.0.0.1")
TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:5669 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 4711 1 x
   1: 0100007F:566A 0100007F:9999 01 00000000:00000000 00:00000000 00000000  1001        0 4712 1 x
"""


def machine(port: int, memory_mib: int = 1536) -> Machine:
    return Machine("gpu01", LOOPBACK, Endpoint(LOOPBACK, port), cpus=1, memory_mib=memory_mib)


def test_a_taken_port_is_named_with_who_holds_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        (problem,) = room.port_problems([machine(port)])
        with pytest.raises(CouldNotRunError, match="gpu01"):
            room.require([machine(port)])
    assert f"gpu01: port {port} of 127.0.0.1" in problem.message
    assert f"process {os.getpid()}" in problem.message
    assert "ansible_port" in problem.hint
    assert room.port_problems([machine(port)]) == []


def test_only_a_listener_holds_a_port() -> None:
    assert room.listener([TABLE], 0x5669) == 4711
    assert room.listener([TABLE], 0x566A) is None


def test_too_little_memory_is_refused_with_the_sum() -> None:
    with pytest.raises(CouldNotRunError) as caught:
        room.require_memory([machine(1, memory_mib=1 << 30), machine(2)])
    (problem,) = caught.value.problems
    assert f"{(1 << 30) + 1536 + 256} MiB are needed" in problem.message
    assert "memory_mib" in problem.hint
    room.require_memory([])


def test_available_memory_is_read() -> None:
    assert room.available_mib("MemTotal: 1 kB\nMemAvailable:    4097024 kB\n") == 4001
    assert room.available_mib("MemTotal: 1 kB\n") is None
