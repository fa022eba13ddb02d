"""The example of a production site: nothing is wrong with it, and its files are as expected.

After a change that is meant: `HPCSITE_UPDATE_GOLDEN=1 pytest tests/golden`, then read the diff.
"""

import os
from pathlib import Path

import pytest

from hpcsite.deploy.render import render_site, write_files
from hpcsite.paths import content_dir
from hpcsite.site.load import load_site
from hpcsite.site.model import Site

FOLDER = content_dir() / "inventory" / "example-h100"
EXPECTED = Path(__file__).parent / "expected" / "example-h100"
FILES = {
    *("slurm.conf", "gres.conf", "cgroup.conf", "topology.conf", "slurmdbd.conf"),
    *("exports.nfs1", "hosts", "accounts"),
}


@pytest.fixture(scope="module")
def example() -> Site:
    return load_site(FOLDER)


def test_nothing_is_wrong_with_it(example: Site) -> None:
    # Nothing is acknowledged either: a reason is a person's word, and this site has nobody.
    assert [*example.warnings] == []


def test_files_are_as_expected(example: Site) -> None:
    files = render_site(example)
    if os.environ.get("HPCSITE_UPDATE_GOLDEN"):
        write_files(files, EXPECTED)
    assert set(files) == FILES
    assert {path.name for path in EXPECTED.iterdir()} == FILES
    for name, text in files.items():
        assert text == (EXPECTED / name).read_text(encoding="utf-8"), name


def test_files_hold_no_secret(example: Site) -> None:
    assert "StoragePass=***" in render_site(example)["slurmdbd.conf"]


def test_it_is_the_site_that_the_docs_speak_of(example: Site) -> None:
    assert len(example.in_group("slurm_compute")) == 32
    assert len(example.in_group("slurm_login")) == 2
    servers = {
        host.name
        for group in ("lustre_mgs", "lustre_mds", "lustre_oss")
        for host in example.in_group(group)
    }
    assert len(servers) == 4
    controllers = ("slurm_controller", "slurm_backup_controller")
    assert [[host.name for host in example.in_group(group)] for group in controllers] == [
        ["ctl1"],
        ["ctl2"],
    ]
    assert example.keys.node_groups["mig"].mig
    assert len(example.in_group("mig")) == 2


def test_leaves_and_spines_have_as_many_cables_as_ports(example: Site) -> None:
    """Half of a leaf's 64 ports go down and half up, and a spine's 64 are all taken."""
    switches = example.keys.switches
    leaves = [s for s in switches.values() if s.fabric == "compute" and s.role == "leaf"]
    assert len(leaves) == 8
    for leaf in leaves:
        assert len(leaf.links) * 16 == sum(leaf.uplinks.values()) == 32
    for name in (name for name, switch in switches.items() if switch.role == "spine"):
        assert sum(leaf.uplinks[name] for leaf in leaves) == 64


def test_every_host_stands_in_a_rack_and_every_node_survives_the_loss_of_a_feed(
    example: Site,
) -> None:
    contents = [item for rack in example.keys.racks.values() for item in rack.contents]
    assert len([item for item in contents if item.switch]) == len(example.keys.switches)
    nodes = [item for item in contents if item.hosts and item.hosts.startswith("gpu")]
    assert {tuple(sorted(item.feeds.items())) for item in nodes} == {(("a", 2), ("b", 2), ("c", 2))}
