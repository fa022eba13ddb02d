"""Waiting for logins: who is asked, and when it is given up."""

import socket
import threading
from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from hpcsite.lab import sshwait
from hpcsite.lab.spec import Endpoint
from hpcsite.lab.sshwait import Waiter


@pytest.fixture
def greeting() -> Iterator[Endpoint]:
    """Give a port that speaks like an ssh server, and nothing more."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def talk() -> None:
            with server.accept()[0] as link:
                link.sendall(b"SSH-2.0-x\r\n")

        thread = threading.Thread(target=talk)
        thread.start()
        yield Endpoint(IPv4Address("127.0.0.1"), server.getsockname()[1])
        thread.join()


def test_a_server_that_speaks_is_worth_a_login(greeting: Endpoint) -> None:
    assert sshwait._greets(greeting)


def test_an_open_port_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sshwait, "_BANNER_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = Endpoint(IPv4Address("127.0.0.1"), server.getsockname()[1])
        assert not sshwait.answers(tmp_path, endpoint)


def test_a_dead_machine_is_not_waited_for_nor_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[Endpoint] = []

    def answers(_: Path, endpoint: Endpoint, *, login_seconds: int) -> bool:
        asked.append(endpoint)
        return login_seconds > 0

    monkeypatch.setattr(sshwait, "answers", answers)
    waiter = Waiter(tmp_path, 60, threading.Event())
    endpoint = Endpoint(IPv4Address("127.0.0.1"), 22121)
    assert not waiter.wait(endpoint, alive=lambda: False, ready=lambda: False)
    assert asked == []
    assert waiter.wait(endpoint, alive=lambda: True, ready=lambda: True)
    assert asked == [endpoint]
