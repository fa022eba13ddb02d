from dataclasses import dataclass

import pytest

from hpcsite.slurm.conf import expand
from hpcsite.slurm.topology_conf import render_topology_conf


@dataclass(frozen=True)
class Leaf:
    name: str
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Upper:
    name: str
    switches: tuple[str, ...]


@dataclass(frozen=True)
class Tree:
    leaves: tuple[Leaf, ...] = ()
    uppers: tuple[Upper, ...] = ()


NODES = tuple(expand("gpu[01-08]"))
TREE = Tree(
    (Leaf("leaf1", NODES[:4]), Leaf("leaf2", NODES[4:7]), Leaf("leaf3", NODES[7:])),
    (Upper("spine", ("leaf1", "leaf2", "leaf3")),),
)


def lines(kind: str, tree: Tree | None = TREE, nodes: tuple[str, ...] = NODES) -> list[str]:
    return render_topology_conf(kind, tree, nodes).splitlines()[1:]  # type: ignore[arg-type]


def test_a_tree_names_leaves_before_what_is_above_them() -> None:
    assert lines("tree") == [
        "SwitchName=leaf1 Nodes=gpu[01-04]",
        "SwitchName=leaf2 Nodes=gpu[05-07]",
        "SwitchName=leaf3 Nodes=gpu08",
        "SwitchName=spine Switches=leaf[1-3]",
    ]


def test_nodes_without_a_line_are_left_out_and_so_is_a_switch_without_nodes() -> None:
    assert lines("tree", nodes=NODES[1:7]) == [
        "SwitchName=leaf1 Nodes=gpu[02-04]",
        "SwitchName=leaf2 Nodes=gpu[05-07]",
        "SwitchName=spine Switches=leaf[1-2]",
    ]


def test_a_switch_above_nothing_is_left_out_on_every_level() -> None:
    tree = Tree(
        (Leaf("a1", ("a",)), Leaf("b1", ("b",))),
        (Upper("a2", ("a1",)), Upper("b2", ("b1",)), Upper("top", ("a2", "b2"))),
    )
    assert lines("tree", tree, ("b",)) == [
        "SwitchName=b1 Nodes=b",
        "SwitchName=b2 Switches=b1",
        "SwitchName=top Switches=b2",
    ]


def test_the_base_size_of_blocks_is_that_of_the_smallest() -> None:
    assert lines("block", nodes=NODES[:7]) == [
        "BlockName=leaf1 Nodes=gpu[01-04]",
        "BlockName=leaf2 Nodes=gpu[05-07]",
        "BlockSizes=3",
    ]


@pytest.mark.parametrize(
    ("kind", "tree", "nodes"),
    [("none", TREE, NODES), ("tree", None, NODES), ("tree", Tree(), NODES), ("tree", TREE, ())],
)
def test_without_switches_or_nodes_there_is_no_file(
    kind: str, tree: Tree | None, nodes: tuple[str, ...]
) -> None:
    assert render_topology_conf(kind, tree, nodes) == ""  # type: ignore[arg-type]
