"""The tree of switches that Slurm is told of."""

import time
from typing import Any

import pytest

from hpcsite.site.model import SiteKeys
from hpcsite.site.names import fold, unfold
from hpcsite.site.topology import Leaf, Tree, Upper, slurm_tree

NODES = unfold("gpu[01-08]") or ()
IB = {"kind": "infiniband", "speed_gbit_s": 400}


def tree(
    switches: dict[str, Any], nodes: tuple[str, ...] = NODES, fabrics: dict[str, Any] | None = None
) -> Tree:
    described = {
        name: {"fabric": "ib", **switch, "links": [{"nodes": each} for each in switch["links"]]}
        for name, switch in switches.items()
    }
    fabrics = fabrics or {"ib": IB}
    keys = SiteKeys.model_validate({"name": "x", "fabrics": fabrics, "switches": described})
    return slurm_tree(keys, nodes)


def leaf(links: str | list[str], *up: str) -> dict[str, Any]:
    return {"links": [links] if isinstance(links, str) else links, "uplinks": dict.fromkeys(up, 4)}


def above(*up: str, role: str = "spine") -> dict[str, Any]:
    return {"role": role, "links": [], "uplinks": dict.fromkeys(up, 4)}


def test_two_leaves_under_two_spines_are_under_one() -> None:
    spines = {"spine1": above(), "spine2": above()}
    leaves = {
        "leaf1": leaf("gpu[01-04]", "spine1", "spine2"),
        "leaf2": leaf("gpu[05-08]", "spine1", "spine2"),
    }
    found = tree(leaves | spines)
    assert found == Tree(
        fabrics=("ib",),
        leaves=(Leaf("leaf1", NODES[:4], ("leaf1",)), Leaf("leaf2", NODES[4:], ("leaf2",))),
        uppers=(Upper("spine1", ("leaf1", "leaf2"), ("spine1", "spine2")),),
    )
    assert found.roots == ("spine1",)
    assert tree(spines | leaves) == found


def test_leaves_of_all_rails_with_the_same_nodes_are_one() -> None:
    """Rail-optimised: each node of a unit hangs on each of the unit's leaves."""
    units = {1: "gpu[01-04]", 2: "gpu[05-08]"}
    switches = {
        f"leaf{unit}{rail}": leaf(nodes, f"spine{rail}")
        for unit, nodes in units.items()
        for rail in range(4)
    }
    found = tree(switches | {f"spine{rail}": above() for rail in range(4)})
    assert [(each.name, fold(each.nodes)) for each in found.leaves] == [
        ("leaf10", "gpu[01-04]"),
        ("leaf20", "gpu[05-08]"),
    ]
    assert found.leaves[0].switches == ("leaf10", "leaf11", "leaf12", "leaf13")
    assert [(each.name, each.switches) for each in found.uppers] == [
        ("spine0", ("leaf10", "leaf20"))
    ]


def test_spines_of_different_leaves_are_under_the_core() -> None:
    switches = {
        **{f"leaf{n}": leaf(f"gpu0{n}", "spine1" if n < 3 else "spine2") for n in (1, 2, 3, 4)},
        "spine1": above("core1", "core2"),
        "spine2": above("core1", "core2"),
        "core1": above(role="core"),
        "core2": above(role="core"),
    }
    found = tree(switches, NODES[:4])
    assert [(each.name, each.switches) for each in found.uppers] == [
        ("spine1", ("leaf1", "leaf2")),
        ("spine2", ("leaf3", "leaf4")),
        ("core1", ("spine1", "spine2")),
    ]
    assert found.roots == ("core1",)


def test_a_leaf_right_at_the_core_is_joined_there() -> None:
    switches = {
        "leaf1": leaf("gpu01", "spine1"),
        "leaf2": leaf("gpu02", "core1"),
        "spine1": above("core1"),
        "core1": above(role="core"),
    }
    found = tree(switches, NODES[:2])
    assert found.uppers == (Upper("core1", ("leaf1", "leaf2"), ("core1",)),)


def test_no_node_is_on_two_leaves() -> None:
    """A node on both leaves is on a leaf of its own, beside those with one connection."""
    both = {"leaf1": leaf("gpu[01-04]", "spine"), "leaf2": leaf("gpu[04-08]", "spine")}
    found = tree(both | {"spine": above()})
    assert [(each.name, fold(each.nodes)) for each in found.leaves] == [
        ("leaf1", "gpu[01-03]"),
        ("leaf1-leaf2", "gpu04"),
        ("leaf2", "gpu[05-08]"),
    ]
    assert found.roots == ("spine",)


def test_what_nothing_joins_has_several_roots() -> None:
    found = tree({"leaf1": leaf("gpu[01-04]"), "leaf2": leaf("gpu[05-08]")})
    assert found.uppers == ()
    assert found.roots == ("leaf1", "leaf2")


def test_nodes_on_no_switch_are_missing() -> None:
    assert tree({"leaf1": leaf(["gpu[01-03]", "login"])}).missing == NODES[3:]
    assert slurm_tree(SiteKeys(name="x"), NODES) == Tree(missing=NODES)


@pytest.mark.parametrize(
    ("storage", "chosen"),
    [
        ({"speed_gbit_s": 200}, "ib"),
        ({"speed_gbit_s": 800}, "storage"),
        ({"rails": 2}, "storage"),
        ({"speed_gbit_s": 100, "rails": 2}, "ib"),
    ],
)
def test_the_fabric_with_most_bandwidth_is_the_tree(storage: dict[str, Any], chosen: str) -> None:
    fabrics = {"storage": IB | storage, "ib": IB}
    switches = {"s1": {**leaf("gpu[01-08]"), "fabric": "storage"}, "leaf1": leaf("gpu[01-08]")}
    assert tree(switches, fabrics=fabrics).fabrics == (chosen,)


def test_of_two_as_fast_that_of_most_nodes_is_the_tree() -> None:
    switches = {"s1": {**leaf("gpu[01-07]"), "fabric": "storage"}, "leaf1": leaf("gpu[01-08]")}
    assert tree(switches, fabrics={"storage": IB, "ib": IB}).fabrics == ("ib",)
    switches["s1"] = {**leaf("gpu[01-08]"), "fabric": "storage"}
    assert tree(switches, fabrics={"storage": IB, "ib": IB}).fabrics == ("storage",)


def test_nodes_without_the_fabric_are_placed_by_another() -> None:
    switches = {
        "leaf1": leaf("gpu[01-08]"),
        "access": {**leaf(["login1", "gpu[01-08]"], "top"), "fabric": "lan"},
        "top": {**above(), "fabric": "lan"},
    }
    lan = {"kind": "ethernet", "speed_gbit_s": 25}
    found = tree(switches, ("login1", *NODES), fabrics={"lan": lan, "ib": IB})
    assert found.fabrics == ("ib", "lan")
    assert [(each.name, fold(each.nodes)) for each in found.leaves] == [
        ("leaf1", "gpu[01-08]"),
        ("access", "login1"),
    ]
    assert found.missing == ()


def test_uplinks_in_a_circle_or_to_nowhere_end() -> None:
    switches = {"leaf1": leaf("gpu01", "leaf2", "no"), "leaf2": leaf("gpu02", "leaf1")}
    assert {each.name for each in tree(switches, NODES[:2]).leaves} == {"leaf1", "leaf2"}


def test_2000_nodes_on_500_leaves_take_no_time() -> None:
    nodes = unfold("n[0001-2000]") or ()
    switches = {f"l{n}": leaf(f"n[{4 * n + 1:04}-{4 * n + 4:04}]", "s") for n in range(500)}
    begin = time.monotonic()
    found = tree(switches | {"s": above()}, nodes)
    assert len(found.leaves) == 500
    assert found.uppers[0].switches == tuple(switches)
    assert time.monotonic() - begin < 5
