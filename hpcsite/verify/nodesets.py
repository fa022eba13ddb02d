"""Node sets as Slurm writes them; ClusterShell does the algebra."""

from collections.abc import Iterable

from ClusterShell.NodeSet import NodeSet


def fold(names: Iterable[str]) -> str:
    """`["gpu01", "gpu02"]` → `gpu[01-02]`; padding kept, sorted, no name twice."""
    nodes = NodeSet()
    for name in names:
        nodes.add(name)
    return str(nodes)


def expand(nodes: str) -> tuple[str, ...]:
    """`gpu[01-02]` → `("gpu01", "gpu02")`; empty for an empty set."""
    return tuple(str(name) for name in NodeSet(nodes))
