import pytest

from hpcsite.site.model import NodeGroup
from hpcsite.slurm.cluster import Node
from hpcsite.slurm.gres import Gres, GroupGres, gres_problems, parse_gres
from hpcsite.slurm.hardware import Machine
from hpcsite.slurm.render_gres import render_gres_conf


def group(**keys: object) -> NodeGroup:
    return NodeGroup.model_validate({"gpus": {"count": 4, "type": "h100"}} | keys)


def gres_conf(nodes: dict[str, str], groups: dict[str, NodeGroup]) -> list[str]:
    """Lines of gres.conf for nodes that are in these groups."""
    machines = {
        name: Machine(8, 1, 8, 1, 1000, GroupGres(groups[of]).of(name))
        for name, of in nodes.items()
    }
    whole = [Node(name, name, of, machines[name]) for name, of in nodes.items()]
    return render_gres_conf(whole, groups).splitlines()[1:]


@pytest.mark.parametrize(
    ("text", "gres"),
    [
        ("gpu:8", (Gres(8),)),
        ("gpu:h100:8", (Gres(8, "h100"),)),
        ("shard:4,gpu:a100-80:2(S:0)", (Gres(4, name="shard"), Gres(2, "a100-80"))),
        ("gpu:1g.10gb:28,gpu:h100:4", (Gres(28, "1g.10gb"), Gres(4, "h100"))),
        ("gpu:h100:8(S:0,1),mps:800", (Gres(8, "h100"), Gres(800, name="mps"))),
        ("bandwidth:lustre:4G", ()),
        ("", ()),
    ],
)
def test_gres_of_a_line_are_read(text: str, gres: tuple[Gres, ...]) -> None:
    assert parse_gres(text) == gres


@pytest.mark.parametrize("gres", [Gres(8), Gres(28, "1g.10gb"), Gres(64, name="shard")])
def test_gres_are_read_as_they_are_written(gres: Gres) -> None:
    assert parse_gres(str(gres)) == (gres,)


def test_nodes_that_an_entry_names_have_their_own() -> None:
    mig = [{"nodes": "gpu[03-04]", "gpus": "0-1", "profiles": {"1g.10gb": 7}}]
    gres = GroupGres(group(mig=mig, shards=None))
    assert gres.of("gpu01") == (Gres(4, "h100"),)
    assert gres.of("gpu03") == gres.of("gpu04") == (Gres(2, "h100"), Gres(14, "1g.10gb"))


def test_gres_conf_names_device_files_of_whole_gpus() -> None:
    groups = {"a": group(), "b": group(gpus={"count": 1, "device": "/dev/dri/card"})}
    assert gres_conf({"a1": "a", "a2": "a", "b1": "b"}, groups) == [
        "NodeName=a[1-2] Name=gpu Type=h100 File=/dev/nvidia[0-3]",
        "NodeName=b1 Name=gpu File=/dev/dri/card0",
    ]


def test_gres_conf_has_nvml_find_the_files_of_instances() -> None:
    groups = {"a": group(mig=[{"nodes": "a2", "profiles": {"3g.40gb": 2}}])}
    assert gres_conf({"a1": "a", "a2": "a"}, groups) == [
        "NodeName=a1 Name=gpu Type=h100 File=/dev/nvidia[0-3]",
        "NodeName=a2 AutoDetect=nvml",
    ]


@pytest.mark.parametrize(("key", "name"), [("shards", "shard"), ("mps", "mps")])
def test_gres_conf_counts_shares_beside_the_gpus(key: str, name: str) -> None:
    assert gres_conf({"a1": "a"}, {"a": group(**{key: 400})}) == [
        "NodeName=a1 Name=gpu Type=h100 File=/dev/nvidia[0-3]",
        f"NodeName=a1 Name={name} Count=400",
    ]


def test_whole_gpus_beside_instances_need_a_type() -> None:
    half = {"gpus": {"count": 4}, "mig": [{"gpus": "0", "profiles": {"1g.10gb": 7}}]}
    assert [problem.hint for problem in gres_problems({"a": group(**half)})] == [
        "give site_node_groups.a.gpus a type, e.g. h100"
    ]
    whole = {"gpus": {"count": 4}, "mig": [{"profiles": {"1g.10gb": 7}}]}
    assert gres_problems({"a": group(**whole), "b": group(mig=half["mig"])}) == []
