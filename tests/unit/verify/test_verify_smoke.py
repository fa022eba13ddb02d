"""Suite `smoke`: what others did to a site is named, what nobody wants is a FAIL."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hpcsite.slurm.node_records import read_nodes
from hpcsite.verify.context import Context
from hpcsite.verify.engine import Check, execute
from hpcsite.verify.results import Result
from hpcsite.verify.suites.node import STATE
from hpcsite.verify.suites.smoke import CHECKS as SMOKE
from tests.unit.verify.fakeslurm import FakeSlurm, context_for, fixture

SMOKE_NODES, SMOKE_JOB = SMOKE


def nodes_json(**changes: object) -> str:
    """Both nodes as they are when idle; gpu02 with changes."""
    known = json.loads(fixture("nodes-idle.json"))
    known["nodes"][1] |= changes
    return json.dumps(known)


def with_gpu02(tmp_path: Path, check: Check, *, both: bool = False, **changes: object) -> Result:
    context = context_for(tmp_path, FakeSlurm())
    nodes = read_nodes(nodes_json(**changes))
    if both:
        nodes["gpu01"] = replace(nodes["gpu02"], name="gpu01")
    return execute(
        check, Context(context.core, replace(context.cluster, nodes=nodes), context.evidence)
    )


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (["MIXED", "DRAIN"], "fan is loud"),
        (["IDLE", "MAINTENANCE"], ""),
        (["IDLE", "REBOOT_REQUESTED"], ""),
        (["IDLE", "REBOOT_ISSUED", "NOT_RESPONDING"], ""),
        (["IDLE", "POWERED_DOWN"], ""),
    ],
)
def test_smoke_names_what_others_set_aside(tmp_path: Path, state: list[str], reason: str) -> None:
    result = with_gpu02(tmp_path, SMOKE_NODES, state=state, reason=reason)
    assert result.status == "PASS"
    assert result.reason.startswith(f"gpu02 is {'+'.join(state)}")
    assert reason in result.reason
    assert with_gpu02(tmp_path, STATE, state=state, reason=reason).status == "FAIL"
    assert with_gpu02(tmp_path, SMOKE_JOB, state=state, reason=reason).status == "PASS"


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (["DOWN"], "fan is loud"),
        (["DOWN", "DRAIN"], "fan is loud"),
        (["IDLE", "NOT_RESPONDING"], ""),
        (["IDLE", "DRAIN", "INVALID_REG"], "gres/gpu count reported lower than configured (7 < 8)"),
        (["IDLE", "DRAIN"], "hpcsite: 8 GPUs declared, 7 found"),
        (["DOWN", "REBOOT_ISSUED"], "reboot timed out"),
        ([], ""),
    ],
)
def test_smoke_fails_for_what_nobody_wants(tmp_path: Path, state: list[str], reason: str) -> None:
    result = with_gpu02(tmp_path, SMOKE_NODES, state=state, reason=reason)
    assert result.status == "FAIL"
    assert result.reason.startswith("gpu02 is ")
    assert with_gpu02(tmp_path, STATE, state=state, reason=reason).status == "FAIL"


def test_smoke_takes_a_node_with_room(tmp_path: Path) -> None:
    result = with_gpu02(tmp_path, SMOKE_JOB, gres_used="gpu:8")
    assert (result.status, result.nodes) == ("PASS", "gpu01")


@pytest.mark.parametrize(
    "full", [{"gres_used": "gpu:8"}, {"alloc_cpus": 8}, {"alloc_memory": 3990}]
)
def test_smoke_waits_for_nobody_on_a_full_site(tmp_path: Path, full: dict[str, object]) -> None:
    result = with_gpu02(tmp_path, SMOKE_JOB, both=True, **full)
    assert (result.status, result.reason) == ("SKIP", "others use every node that takes jobs")


def test_smoke_skips_its_job_where_all_is_set_aside(tmp_path: Path) -> None:
    state = ["IDLE", "MAINTENANCE"]
    result = with_gpu02(tmp_path, SMOKE_JOB, both=True, state=state)
    assert (result.status, result.reason) == (
        "SKIP",
        "no node takes jobs: gpu[01-02] are IDLE+MAINTENANCE",
    )
    assert with_gpu02(tmp_path, SMOKE_JOB, both=True, state=["DOWN"]).status == "ERROR"
