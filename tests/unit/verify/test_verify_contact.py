"""Nodes that Slurm still calls IDLE although nobody answers there."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from socket import create_server

import pytest

from hpcsite.site.model import NfsExport, Site
from hpcsite.verify import contact
from hpcsite.verify.context import Context
from hpcsite.verify.engine import Check, execute
from hpcsite.verify.evidence import Evidence
from hpcsite.verify.measure import refreshed
from hpcsite.verify.results import Result
from hpcsite.verify.suites import DEFAULT_SUITES, SUITES
from hpcsite.verify.suites.node import STATE
from hpcsite.verify.suites.smoke import CHECKS as SMOKE
from tests.unit.verify.fakeslurm import FakeSlurm, context_for, make_site

SMOKE_NODES, SMOKE_JOB = SMOKE
# These have something to say without any node.
NEED_NODES = [
    check
    for suite in DEFAULT_SUITES
    for check in SUITES[suite]
    if check.name not in ("bad_requests", "clocks", "stuck_jobs")
]
SAID = "@ gpu01 Connection refused\n@ gpu02 yes\n"
REFUSED = "gpu01 is IDLE in Slurm, but no slurmd answers login there: Connection refused"


def with_every_feature() -> Site:
    """The usual site, with what checks of features need to have anything to do."""
    site = make_site()
    hosts = {
        name: host.model_copy(
            update={
                "groups": host.groups | {"rdma", "nfs_server" if name == "head" else "nfs_client"},
                "vars": {"rdma_mode": "infiniband"},
            }
        )
        for name, host in site.hosts.items()
    }
    real = site.keys.node_groups["gpu"].model_copy(update={"virtual": False})
    changes = {"nfs_exports": (NfsExport(path="/shared"),), "node_groups": {"gpu": real}}
    keys = site.keys.model_copy(update=changes)
    return site.model_copy(update={"hosts": hosts, "keys": keys})


def contacted(tmp_path: Path, slurm: FakeSlurm) -> Context:
    context = context_for(tmp_path, slurm, with_every_feature())
    found = contact.silent(context.core, context.cluster, Evidence(tmp_path, "run"))
    return Context(context.core, replace(context.cluster, silent=found), context.evidence)


def run(tmp_path: Path, check: Check, said: str = SAID) -> Result:
    slurm = FakeSlurm(answers={" contact ": (0, said, "")})
    return execute(check, contacted(tmp_path, slurm))


@pytest.mark.parametrize("check", [SMOKE_NODES, STATE])
def test_a_silent_node_that_slurm_calls_idle_fails(tmp_path: Path, check: Check) -> None:
    result = run(tmp_path, check)
    assert (result.status, result.reason) == ("FAIL", REFUSED)


def test_nodes_with_one_cause_stand_together(tmp_path: Path) -> None:
    result = run(tmp_path, STATE, "@ gpu01 nothing within 2 s\n@ gpu02 nothing within 2 s\n")
    assert result.reason.startswith("gpu[01-02] are IDLE in Slurm, but no slurmd answers")
    assert result.reason.endswith("nothing within 2 s")


def test_a_node_that_was_not_heard_of_is_not_well(tmp_path: Path) -> None:
    assert run(tmp_path, SMOKE_NODES, "@ gpu01 yes\n").status == "FAIL"


def test_the_job_of_smoke_goes_where_somebody_answers(tmp_path: Path) -> None:
    result = run(tmp_path, SMOKE_JOB)
    assert (result.status, result.nodes) == ("PASS", "gpu02")


def test_a_node_once_silent_stays_so_when_slurm_is_asked_again(tmp_path: Path) -> None:
    context = contacted(tmp_path, FakeSlurm(answers={" contact ": (0, SAID, "")}))
    again = refreshed(context.core, context.cluster)
    assert again.unusable("gpu01") == REFUSED


def test_nodes_that_slurm_gives_no_jobs_are_left_alone(tmp_path: Path) -> None:
    slurm = FakeSlurm(nodes="nodes-drained.json")
    contacted(tmp_path, slurm)
    (line,) = slurm.asked
    assert "gpu01 gpu01 6818" in line
    assert "gpu02" not in line


def test_the_script_tells_who_answers_from_who_hangs_and_who_is_gone() -> None:
    servers = [create_server(("127.0.0.1", 0)) for _ in range(3)]
    lives, hangs, gone = servers
    ports = [str(server.getsockname()[1]) for server in servers]
    gone.close()
    words = [
        word
        for name, port in zip(("lives", "hangs", "gone"), ports, strict=True)
        for word in (name, "127.0.0.1", port)
    ]
    with lives, hangs, ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: lives.accept()[0].close())
        said = subprocess.run(
            [sys.executable, "-c", contact.SCRIPT, "contact", *words],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
    assert said.stdout.splitlines() == [
        "@ lives yes",
        "@ hangs nothing within 2 s",
        "@ gone Connection refused",
    ]


@pytest.mark.parametrize("check", NEED_NODES)
def test_where_no_node_can_be_used_every_check_says_the_same(tmp_path: Path, check: Check) -> None:
    gone = "nothing within 2 s"
    result = run(tmp_path, check, f"@ gpu01 {gone}\n@ gpu02 {gone}\n")
    assert result.status == ("FAIL" if check == STATE else "ERROR")
    why = f"gpu[01-02] are IDLE in Slurm, but no slurmd answers login there: {gone}"
    assert result.reason == why
