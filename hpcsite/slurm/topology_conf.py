"""The text of topology.conf. Pure; the same input gives the same bytes.

slurmctld complains of nodes that it does not know, and a switch needs nodes or switches below it
(topology.conf(5)), so what a run leaves out of slurm.conf is left out here too.
"""

from collections.abc import Collection, Sequence
from typing import Literal, Protocol

from hpcsite.slurm.conf import fold
from hpcsite.slurm.text import HEADER


class Leaf(Protocol):
    """A switch with nodes."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def nodes(self) -> Sequence[str]: ...  # noqa: D102


class Upper(Protocol):
    """A switch with switches below it."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def switches(self) -> Sequence[str]: ...  # noqa: D102


class Tree(Protocol):
    """Switches, each after those below it."""

    @property
    def leaves(self) -> Sequence[Leaf]: ...  # noqa: D102
    @property
    def uppers(self) -> Sequence[Upper]: ...  # noqa: D102


def render_topology_conf(
    kind: Literal["none", "tree", "block"], tree: Tree | None, nodes: Collection[str]
) -> str:
    """topology.conf for the nodes of slurm.conf; empty where there is to be none."""
    if kind == "none" or tree is None:
        return ""
    known = frozenset(nodes)
    leaves = [(leaf.name, [node for node in leaf.nodes if node in known]) for leaf in tree.leaves]
    leaves = [(name, members) for name, members in leaves if members]
    if not leaves:
        return ""
    if kind == "block":
        return HEADER + "".join(_blocks(leaves))
    return HEADER + "".join(_switches(leaves, tree.uppers))


def _switches(leaves: list[tuple[str, list[str]]], uppers: Sequence[Upper]) -> list[str]:
    lines = [f"SwitchName={name} Nodes={fold(members)}\n" for name, members in leaves]
    told = {name for name, _ in leaves}
    for upper in uppers:
        if below := [name for name in upper.switches if name in told]:
            told.add(upper.name)
            lines.append(f"SwitchName={upper.name} Switches={fold(below)}\n")
    return lines


def _blocks(leaves: list[tuple[str, list[str]]]) -> list[str]:
    """Make each leaf a block; no block may be smaller than the base size, so that is the least."""
    lines = [f"BlockName={name} Nodes={fold(members)}\n" for name, members in leaves]
    return [*lines, f"BlockSizes={min(len(members) for _, members in leaves)}\n"]
