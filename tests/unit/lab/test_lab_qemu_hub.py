"""What the hub says of its links, and how qemu's monitor is talked to."""

import json
import socket
import threading
from pathlib import Path

import pytest

from hpcsite.errors import CouldNotRunError
from hpcsite.lab.qemu import qmp
from hpcsite.lab.qemu.hub import Link, parse_links

# qemu 7.2: gpu01 is connected, gpu02 ended, `a-b` is a name with a hyphen.
NETWORK = (
    "hub 0\r\n"
    " \\ h-gpu02-41: s-gpu02-41: index=0,type=stream,\r\n"
    " \\ h-gpu01-40: s-gpu01-40: index=0,type=stream,unix:gpu01.link\r\n"
    "s-a-b-7: index=0,type=stream,unix:a-b.link\r\n"
)


def test_links_have_a_node_a_process_and_a_state() -> None:
    assert parse_links(NETWORK) == [
        Link("gpu02", 41, connected=False, in_hub=True),
        Link("gpu01", 40, connected=True, in_hub=True),
        Link("a-b", 7, connected=True, in_hub=False),
    ]
    assert parse_links("hub 0\r\n") == []


def serve(folder: Path, answers: list[str]) -> threading.Thread:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(folder / "q"))
    server.listen(1)

    def talk() -> None:
        with server, server.accept()[0] as link, link.makefile("rw") as stream:
            stream.write('{"QMP": {}}\n')
            stream.flush()
            for answer in answers:
                stream.readline()
                stream.write(answer)
                stream.flush()

    thread = threading.Thread(target=talk)
    thread.start()
    return thread


def test_events_are_passed_over_and_refusals_are_errors(tmp_path: Path) -> None:
    event = json.dumps({"event": "SHUTDOWN"}) + "\n"
    good = json.dumps({"return": {"x": 1}}) + "\n"
    bad = json.dumps({"error": {"class": "GenericError", "desc": "no such netdev"}}) + "\n"
    thread = serve(tmp_path, [good, event + good, bad])
    with qmp.connected(tmp_path, "q", 5) as monitor:
        assert monitor.execute("query-status") == {"x": 1}
        with pytest.raises(CouldNotRunError, match="no such netdev"):
            monitor.execute("netdev_del", id="x")
    thread.join()


def test_a_qemu_that_ends_is_an_error_not_an_answer(tmp_path: Path) -> None:
    thread = serve(tmp_path, ['{"return": {}}\n'])
    with qmp.connected(tmp_path, "q", 5) as monitor:
        thread.join()
        with pytest.raises(CouldNotRunError, match="does not answer"):
            monitor.execute("quit")


def test_nobody_listens(tmp_path: Path) -> None:
    with pytest.raises(CouldNotRunError, match="does not answer"), qmp.connected(tmp_path, "q", 1):
        pass


def test_a_folder_of_any_length_will_do(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 120)
    short = tmp_path / "short"
    short.mkdir()
    thread = serve(short, ['{"return": {}}\n'])
    short.rename(deep)
    with qmp.connected(deep, "q", 5):
        pass
    thread.join()
