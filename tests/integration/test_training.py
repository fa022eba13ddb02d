"""`hpcsite verify training` in a lab whose nodes have PyTorch, which a deploy installs there."""

import json
from typing import Any

import pytest

from tests.integration.conftest import LabSite

pytestmark = pytest.mark.training


@pytest.fixture(scope="module")
def site(lab_site: LabSite) -> LabSite:
    (lab_site.inventory / "group_vars/all/torch.yml").write_text("verify_tools_torch: true\n")
    lab_site.deploy()
    return lab_site


def verify(site: LabSite, *words: str) -> dict[str, dict[str, Any]]:
    done = site.run("verify", *words, "--json")
    assert done.returncode in (0, 1), done.stderr
    return {f"{one['suite']}/{one['check']}": one for one in json.loads(done.stdout)["results"]}


def test_training_runs_on_both_nodes_and_is_right(site: LabSite) -> None:
    found = verify(site, "training")
    assert {name: one["status"] for name, one in found.items()} == {
        "training/ddp": "PASS",
        "training/fsdp": "PASS",
    }, {name: one["reason"] for name, one in found.items()}
    for one in found.values():
        assert one["nodes"] == "gpu[01-02]"
        speed = next(m for m in one["measurements"] if m["name"] == "samples")
        assert speed["at"]["ranks"] == 4
        assert speed["value"] > 0


def test_scaling_is_measured_and_not_judged_in_a_lab(site: LabSite) -> None:
    found = verify(site, "scaling")["scaling/weak"]
    assert found["status"] == "PASS", found["reason"]
    assert "share one computer" in found["reason"]
    counts = {m["at"].get("node_count") for m in found["measurements"] if m["name"] == "work"}
    assert counts == {1, 2}


def test_a_node_without_torch_is_named(site: LabSite) -> None:
    hidden = "/usr/lib/python3/dist-packages/torch"
    site.ssh("gpu02", f"mv {hidden} {hidden}.away")
    try:
        found = verify(site, "training", "--check", "ddp")["training/ddp"]
    finally:
        site.ssh("gpu02", f"mv {hidden}.away {hidden}")
    assert found["status"] == "FAIL"
    assert "gpu02: no torch" in found["reason"]
