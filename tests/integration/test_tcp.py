"""`hpcsite verify tcp` on a lab of three nodes whose network is slowed: whom it blames."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.integration.conftest import WORKER, LabSite

pytestmark = pytest.mark.lab
GPU02 = "            gpu02:\n              ansible_host: 10.236.{}.22\n"
SLOW = "rate 100mbit burst 64kb latency 50ms"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabSite]:
    if os.geteuid() != 0:
        pytest.skip("the lab needs root")
    folder = tmp_path_factory.mktemp("tcp")
    site = LabSite(folder, name=f"tcptest{WORKER}", network=f"10.236.{WORKER}")
    second = GPU02.format(WORKER)
    third = second.replace("gpu02", "gpu03").replace(".22\n", ".23\n")
    site.edit("hosts.yml", second, second + third)
    try:
        site.ok("lab up")
        site.deploy()
        yield site
    finally:
        site.run("lab down")


@contextmanager
def shaped(site: LabSite, node: str, *commands: str) -> Iterator[None]:
    """Shape what a node sends while the block runs."""
    try:
        for command in commands:
            site.ssh(node, f"tc {command}")
        yield
    finally:
        site.ssh(node, "tc qdisc del dev host0 root")


def bandwidth(site: LabSite, expect: int) -> dict[str, Any]:
    done = site.run("verify", "tcp", "--check", "bandwidth", "--json")
    assert done.returncode == expect, f"{done.stdout}\n{done.stderr}"
    (result,) = json.loads(done.stdout)["results"]
    assert isinstance(result, dict)
    return result


def test_healthy_network_blames_nobody(site: LabSite) -> None:
    result = bandwidth(site, expect=0)
    assert len(result["measurements"]) == 3
    assert result["culprits"] == []


def test_slow_node_is_named(site: LabSite) -> None:
    with shaped(site, "gpu02", f"qdisc add dev host0 root tbf {SLOW}"):
        (culprit,) = bandwidth(site, expect=1)["culprits"]
    assert (culprit["kind"], culprit["name"]) == ("node", "gpu02")


def test_slow_link_is_named_and_neither_of_its_nodes(site: LabSite) -> None:
    with shaped(
        site,
        "gpu02",
        "qdisc add dev host0 root handle 1: htb default 10 r2q 1000",
        "class add dev host0 parent 1: classid 1:10 htb rate 40gbit",
        "class add dev host0 parent 1: classid 1:20 htb rate 100mbit",
        f"filter add dev host0 parent 1: protocol ip u32 match ip dst {site.network}.23/32 "
        "flowid 1:20",
    ):
        (culprit,) = bandwidth(site, expect=1)["culprits"]
    assert (culprit["kind"], culprit["name"]) == ("link", "gpu02 - gpu03")
