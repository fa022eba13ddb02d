"""A site whose only compute node breaks its contract: all else is deployed all the same."""

import os
from collections.abc import Iterator

import pytest

from tests.integration.conftest import LabSite

pytestmark = pytest.mark.lab


@pytest.fixture
def small_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabSite]:
    if os.geteuid() != 0:
        pytest.skip("the lab needs root")
    site = LabSite(tmp_path_factory.mktemp("one"), name="onenode", network="10.232.0")
    hosts = site.inventory / "hosts.yml"
    text = hosts.read_text("utf-8")
    hosts.write_text(text[: text.index("            gpu02:")] + "              site_lab_gpus: 7\n")
    try:
        site.ok("lab up")
        yield site
    finally:
        site.run("lab down")


def test_the_only_node_fails_and_all_else_is_deployed(small_site: LabSite) -> None:
    outcome = small_site.deploy(expect=1)
    assert [failure["nodes"] for failure in outcome["failures"]] == ["gpu01"]
    assert "/dev/nvidia* has 7" in outcome["failures"][0]["message"]
    assert "left out: gpu01; the other nodes are deployed" in outcome["recap"]
    assert "10.232.0" not in small_site.ssh(
        "head", "cat /etc/slurm/slurm.conf | grep NodeName || :"
    )
    assert small_site.as_user("sinfo --noheader --format=%P") == "gpu*"
    assert small_site.ssh("login", "systemctl is-active sackd") == "active"
