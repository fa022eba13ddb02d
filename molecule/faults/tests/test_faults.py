"""`hpcsite verify` fails when the cause of what it looks at is broken, and says where.

Each fault is made by hand on one machine, as a person or a failing device would, and mended again.
"""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from testinfra.host import Host

from tests.labs import Lab

CGROUP_CONF = "/etc/slurm/cgroup.conf"
EXPORTS = "/etc/exports.d/hpcsite.exports"


def verify(lab: Lab, *options: str) -> list[dict[str, Any]]:
    """Run these suites; the checks that found the site at fault."""
    done = lab.hpcsite("verify", *options, "--json")
    assert done.returncode == 1, done.stderr
    return [each for each in json.loads(done.stdout)["results"] if each["status"] == "FAIL"]


@contextlib.contextmanager
def edited(host: Host, file: str, script: str, *, then: str) -> Iterator[None]:
    """A file changed by sed(1), taken over by the command `then`, and put back the same way."""
    before = host.file(file).content_string
    host.check_output(f"cp --preserve {file} /root/kept && sed -i %s {file}", script)
    assert host.file(file).content_string != before
    try:
        host.check_output(then)
        yield
    finally:
        host.check_output(f"mv /root/kept {file} && {then}")


@pytest.fixture
def open_devices(controller: Host) -> Iterator[None]:
    script = "s/^ConstrainDevices=yes$/ConstrainDevices=no/"
    with edited(controller, CGROUP_CONF, script, then="scontrol reconfigure"):
        yield


def test_devices_that_a_job_was_not_given_can_be_opened(lab: Lab, open_devices: None) -> None:
    (failed,) = verify(lab, "isolation", "--check", "devices")
    assert failed["nodes"] == "gpu[01-02]"
    assert "could open /dev/nvidia1" in failed["reason"]


@pytest.fixture
def no_link_on_gpu02(lab: Lab) -> Iterator[None]:
    node = lab.host("gpu02")
    node.check_output("rdma link delete rxe0")
    try:
        yield
    finally:
        node.check_output("systemctl restart hpcsite-soft-roce")


def test_a_node_without_its_rdma_link(lab: Lab, no_link_on_gpu02: None) -> None:
    (links,) = (each for each in verify(lab, "fabric") if each["check"] == "links")
    assert "gpu02" in links["reason"]
    assert "gpu01" not in links["reason"]


@pytest.fixture
def read_only_export(lab: Lab) -> Iterator[None]:
    (server,) = lab.site.in_group("nfs_server")
    script = r"/^\/shared /,/^$/s/(rw,/(ro,/"
    with edited(lab.host(server.name), EXPORTS, script, then="exportfs -ra"):
        yield


def test_a_shared_folder_that_takes_no_data(lab: Lab, read_only_export: None) -> None:
    # The other checks cannot be run, which takes them minutes to find out.
    (failed,) = verify(lab, "storage", "--check", "mounts")
    assert "/shared cannot be written" in failed["reason"]
    assert "/home" not in failed["reason"]
