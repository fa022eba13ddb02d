"""A site that uses all that reaches Slurm's files, rendered offline.

Backup controller, MIG, shards, a tree of two fabrics, QOS, preemption, accounts. After a change
that is meant: `HPCSITE_UPDATE_GOLDEN=1 pytest tests/golden`, then read the diff.
"""

import os
from collections import Counter
from pathlib import Path

import pytest

from hpcsite.deploy.render import render_site, slurm_configuration, write_files
from hpcsite.deploy.templates import filters
from hpcsite.site.load import load_site
from hpcsite.site.model import NodeGroup, Site
from hpcsite.slurm.conf import expand, parse_slurm_conf

FOLDER = Path(__file__).parent / "ridge"
EXPECTED = Path(__file__).parent / "expected" / "ridge"


@pytest.fixture(scope="module")
def ridge() -> Site:
    return load_site(FOLDER)


@pytest.fixture(scope="module")
def files(ridge: Site) -> dict[str, str]:
    return render_site(ridge)


def test_files_are_as_expected(files: dict[str, str]) -> None:
    if os.environ.get("HPCSITE_UPDATE_GOLDEN"):
        write_files(files, EXPECTED)
    assert sorted(files) == sorted(path.name for path in EXPECTED.iterdir())
    for name, text in files.items():
        assert text == (EXPECTED / name).read_text(encoding="utf-8"), name


def test_rendering_twice_gives_the_same_bytes(ridge: Site, files: dict[str, str]) -> None:
    assert render_site(ridge) == files
    assert render_site(load_site(FOLDER)) == files


@pytest.mark.parametrize("second", [False, True])
def test_a_deploy_writes_the_same_files(ridge: Site, files: dict[str, str], second: bool) -> None:
    """The role's filter makes them of Ansible's variables, and of what stands on the controller."""
    keys = {f"site_{k}": v for k, v in ridge.keys.model_dump(mode="json").items()}
    groups = {
        group: [host.name for host in ridge.in_group(group)]
        for host in ridge.hosts.values()
        for group in host.groups
    }
    hostvars = {name: keys | host.vars for name, host in ridge.hosts.items()}
    paths = {"state_dir": "/shared/slurm/state", "spool_dir": "/var/spool/slurmd"}
    standing = files["slurm.conf"] if second else ""
    made = filters()["slurm_configuration"](hostvars, "ctl1", groups, paths, standing)["files"]
    assert made == {name: files[name] for name in made}
    assert "topology.conf" in made


def test_every_node_is_in_one_line_of_each_kind(ridge: Site, files: dict[str, str]) -> None:
    nodes = Counter(host.name for host in ridge.in_group("slurm_compute"))
    for file, key in (("slurm.conf", "NodeName"), ("topology.conf", "Nodes")):
        found = Counter(
            node
            for line in files[file].splitlines()
            if key == "Nodes" or line.startswith(f"{key}=")
            for field in line.split()
            if field.startswith(f"{key}=")
            for node in expand(field.partition("=")[2])
        )
        assert found == nodes, file


def test_what_stands_is_read_as_it_was_written(files: dict[str, str]) -> None:
    conf = parse_slurm_conf(files["slurm.conf"])
    assert conf.nodes["gpu16"]["gres"] == "gpu:h100:4,gpu:3g.40gb:8"
    assert conf.nodes["viz1"]["gres"] == "gpu:l40s:4,shard:32"
    assert conf.keys["slurmctldhost"] == "ctl1(10.20.0.11) ctl2(10.20.0.12)"


def test_no_file_holds_a_secret(files: dict[str, str]) -> None:
    assert "StoragePass=***\n" in files["slurmdbd.conf"]


def test_a_group_without_declared_hardware_is_left_out_and_named(ridge: Site) -> None:
    groups = ridge.keys.node_groups | {"viz": NodeGroup(weight=7)}
    keys = ridge.keys.model_copy(update={"node_groups": groups})
    configuration = slurm_configuration(ridge.model_copy(update={"keys": keys}))
    assert configuration is not None
    assert set(configuration.problems) == {"viz1", "viz2"}
    assert "viz1" not in configuration.slurm_conf + configuration.topology_conf
