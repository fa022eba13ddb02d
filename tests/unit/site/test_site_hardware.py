"""What node groups have: their own word, their profile's, and GPUs that are cut or shared."""

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError

from hpcsite.paths import content_dir
from hpcsite.site.catalogue import load_catalogue
from hpcsite.site.hardware import (
    gpus_of,
    gres_of,
    hardware_of,
    mig_gres_type,
    mig_layouts,
    with_profiles,
)
from hpcsite.site.model import Gpus, Hardware, NodeGroup
from hpcsite.site.names import unfold
from tests.unit.roles.test_modules import load
from tests.unit.site.mini import SiteFolder

SLURM = "group_vars/all/slurm.yml"
OWN = """\
nodes:
  ours:
    title: Ours
    gpu: h100-sxm-80
    gpu_count: 4
    sockets: 2
    cores_per_socket: 48
    threads_per_core: 2
    memory_mib: 1000000
"""


def group(**values: Any) -> NodeGroup:  # noqa: ANN401 - any field
    return NodeGroup.model_validate(values)


def test_a_group_without_a_profile_stays_as_it_is() -> None:
    groups = {"gpu": group(gpus={"count": 8}), "cpu": group()}
    assert with_profiles(groups, load_catalogue()) == groups


def test_a_profile_gives_the_gpus_and_leaves_what_it_does_not_know_to_be_measured() -> None:
    found = with_profiles({"gpu": group(hardware_profile="dgx-h100")}, load_catalogue())["gpu"]
    assert found.gpus == Gpus(count=8, type="h100")
    assert found.hardware is None


def test_a_profile_gives_cpus_and_memory() -> None:
    found = hardware_of(group(hardware_profile="lab-vm"), load_catalogue())
    assert found == Hardware(sockets=1, cores_per_socket=2, memory_mib=1400)


def test_own_values_win() -> None:
    own = {"sockets": 1, "cores_per_socket": 1, "memory_mib": 1000}
    mixed = group(hardware_profile="lab-vm", hardware=own, gpus={"count": 2, "device": "/dev/x"})
    assert hardware_of(mixed, load_catalogue()) == mixed.hardware
    assert gpus_of(mixed, load_catalogue()) == mixed.gpus


def test_a_type_that_is_left_out_is_the_profiles() -> None:
    mixed = group(hardware_profile="dgx-h100", gpus={"count": 8, "device": "/dev/x"})
    assert gpus_of(mixed, load_catalogue()) == Gpus(count=8, type="h100", device="/dev/x")


def test_an_unknown_profile_gives_nothing() -> None:
    assert gpus_of(group(hardware_profile="nothing"), load_catalogue()) is None


@pytest.mark.parametrize(
    ("node", "layouts"),
    [
        (None, {}),
        ("gpu03", {}),
        ("gpu01", {0: {"1g.10gb": 7}, 1: {"1g.10gb": 7}, 2: {"3g.40gb": 2}}),
        ("gpu02", {3: {"7g.80gb": 1}}),
    ],
)
def test_mig_layouts(node: str | None, layouts: dict[int, dict[str, int]]) -> None:
    cut = group(
        gpus={"count": 4},
        mig=[
            {"nodes": "gpu01", "gpus": "0-1", "profiles": {"1g.10gb": 7}},
            {"nodes": "gpu01", "gpus": "2", "profiles": {"3g.40gb": 2}},
            {"nodes": "gpu02", "gpus": "3-99999999999", "profiles": {"7g.80gb": 1}},
        ],
    )
    assert mig_layouts(cut, node) == layouts


def gres(node: str | None = None, **values: Any) -> list[str]:  # noqa: ANN401 - any field
    return [str(found) for found in gres_of(group(**values), node)]


def test_gres_of_whole_gpus() -> None:
    assert gres() == []
    assert gres(gpus={"count": 8, "type": "h100"}) == ["gpu:h100:8"]
    assert gres(gpus={"count": 2}) == ["gpu:2"]


def test_gres_of_cut_gpus() -> None:
    entry = {"nodes": "gpu01", "gpus": "0,2", "profiles": {"3g.40gb": 1, "1g.10gb": 4}}
    values = {"gpus": {"count": 4, "type": "h100"}, "mig": [entry]}
    assert gres("gpu01", **values) == ["gpu:h100:2", "gpu:3g.40gb:2", "gpu:1g.10gb:8"]
    assert gres("gpu02", **values) == ["gpu:h100:4"]
    found = gres_of(group(**values), "gpu01")
    assert [part.gpus for part in found] == [(1, 3), (0, 2), (0, 2)]


def test_gres_where_all_gpus_are_cut() -> None:
    entry = {"profiles": {"1g.10gb": 7}}
    assert gres("a", gpus={"count": 8, "type": "h100"}, mig=[entry]) == ["gpu:1g.10gb:56"]


def test_gres_of_shares() -> None:
    assert gres(gpus={"count": 2}, shards=16) == ["gpu:2", "shard:16"]
    assert gres(gpus={"count": 2}, mps=200) == ["gpu:2", "mps:200"]


def test_instances_are_named_by_slices_and_memory() -> None:
    assert mig_gres_type("1g.10gb") == "1g.10gb"
    assert mig_gres_type("1g.10gb+me") == "1g.10gb"
    entry = {"gpus": "0", "profiles": {"1g.10gb": 6, "1g.10gb+me": 1}}
    (found,) = gres_of(group(gpus={"count": 1}, mig=[entry]))
    assert (str(found), found.gpus) == ("gpu:1g.10gb:7", (0,))


def test_nodes_with_instances_have_no_shares() -> None:
    entry = {"nodes": "a", "gpus": "0", "profiles": {"1g.10gb": 7}}
    values = {"gpus": {"count": 2}, "mig": [entry], "shards": 8}
    assert gres("a", **values) == ["gpu:1", "gpu:1g.10gb:7"]
    assert gres("b", **values) == ["gpu:2", "shard:8"]


def test_a_loaded_site_has_what_its_profiles_say(folder: SiteFolder) -> None:
    folder.write("hardware/ours.yml", OWN)
    old = (folder.path / SLURM).read_text().partition("site_partitions")[0]
    folder.edit(SLURM, old, "site_node_groups:\n  gpu:\n    hardware_profile: ours\n")
    site = folder.load()
    found = site.keys.node_groups["gpu"]
    assert found.hardware
    assert found.hardware.cpus == 192
    assert found.gpus == Gpus(count=4, type="h100")
    assert site.catalogue.nodes["ours"].title == "Ours"


def test_mistakes_of_hardware_files_are_the_sites(folder: SiteFolder) -> None:
    folder.write("hardware/ours.yml", OWN.replace("gpu_count", "gpu_cuont"))
    (problem,) = folder.problems()
    assert problem.code == "HPC1721"
    assert problem.where
    assert problem.where.path.name == "ours.yml"


def test_ansible_sees_what_a_loaded_site_has(folder: SiteFolder) -> None:
    """The playbooks get their variables from Ansible, not from `load_site`."""
    folder.write("hardware/ours.yml", OWN)
    variables = {
        "site_name": "mini",
        "ansible_host": "10.9.0.1",
        "site_node_groups": {"gpu": {"hardware_profile": "ours"}},
        "site_partitions": [{"name": "gpu", "node_groups": ["gpu"], "default": True}],
        "ansible_inventory_sources": (str(folder.path),),
    }
    files = load("filter", "hpcsite_slurm").slurm_configuration(
        {"head": variables, "gpu01": variables},
        "head",
        {"slurm_compute": ["gpu01"], "gpu": ["gpu01"]},
        {"state_dir": "/a", "spool_dir": "/b"},
    )["files"]
    assert "CPUs=192 Sockets=2" in files["slurm.conf"]
    assert "Gres=gpu:h100:4" in files["slurm.conf"]


@pytest.mark.parametrize(
    "nodes",
    ["gpu[1-99999999]", "a[1-9999]b[1-9999]", "gpu[0-" + "9" * 5000 + "]", "g" + "9" * 5000],
)
def test_no_slip_of_the_pen_fills_the_memory(nodes: str) -> None:
    assert unfold(nodes) is None


def test_many_groups_of_nodes_are_no_slip() -> None:
    parts = [f"{letter}[001-200,301-400]" for letter in "abcdefghij"]
    assert len(unfold(",".join(parts)) or ()) == 3000


def test_the_role_that_measures_looks_where_groups_with_a_profile_have_their_gpus() -> None:
    """It reads `gpus` as the inventory has it, so its default must be that of the model."""
    text = (content_dir() / "roles/slurm_evidence/vars/main.yml").read_text(encoding="utf-8")
    assert f"default('{Gpus(count=1).device}')" in text


def test_an_unknown_profile_stops_the_playbook_too(folder: SiteFolder) -> None:
    variables = {
        "site_name": "mini",
        "site_node_groups": {"gpu": {"hardware_profile": "nothing"}},
        "ansible_inventory_sources": (str(folder.path),),
    }
    configure = load("filter", "hpcsite_slurm").slurm_configuration
    paths = {"state_dir": "/a", "spool_dir": "/b"}
    with pytest.raises(AnsibleFilterError, match="gpu: no hardware profile nothing"):
        configure({"head": variables}, "head", {}, paths)
