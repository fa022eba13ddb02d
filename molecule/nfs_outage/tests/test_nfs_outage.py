"""After the server was rebooted under a writing job: the job has ended well, its data is right."""

import hashlib
import json
from typing import Any

import pytest
from testinfra.host import Host

from tests.labs import Lab

BLOCK = 65536
# What a task has waited for the server at least, and how many blocks it writes after that
# (files/writer.py).
OUTAGE_S, BLOCKS_AFTER = 5, 50


@pytest.fixture(scope="module")
def note(lab: Lab) -> dict[str, Any]:
    found = json.loads((lab.notes / "nfs_outage.json").read_text("utf-8"))
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def server(lab: Lab) -> Host:
    (found,) = lab.site.in_group("nfs_server")
    return lab.host(found.name)


def test_the_job_ended_well_and_was_not_begun_anew(note: dict[str, Any]) -> None:
    assert note["ended"] == "COMPLETED|0:0|0"


@pytest.fixture(scope="module")
def said(note: dict[str, Any], server: Host) -> list[dict[str, Any]]:
    """What each task says of itself."""
    ranks = range(int(note["ranks"]))
    return [
        json.loads(server.file(f"{note['folder']}/{rank}.json").content_string) for rank in ranks
    ]


def test_each_task_waited_for_the_server_and_went_on(said: list[dict[str, Any]]) -> None:
    assert all(each["slowest_s"] > OUTAGE_S for each in said)
    assert all(each["blocks"] > BLOCKS_AFTER for each in said)


def test_every_block_is_there_and_right(
    note: dict[str, Any], said: list[dict[str, Any]], server: Host
) -> None:
    for rank, each in enumerate(said):
        lines = (f"{rank:07d} {number:07d}\n".encode() for number in range(each["blocks"]))
        expected = hashlib.sha256(b"".join(line * (BLOCK // 16) for line in lines)).hexdigest()
        assert server.file(f"{note['folder']}/{rank}.data").sha256sum == expected


def test_nothing_failed(lab: Lab) -> None:
    for name in lab.site.hosts:
        assert lab.host(name).check_output("systemctl --failed --no-legend --plain") == ""


def test_no_node_is_out(controller: Host) -> None:
    assert controller.check_output("sinfo --noheader --list-reasons") == ""
