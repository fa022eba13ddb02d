"""The nearest known name to a mistyped one, and sets of node names as Slurm writes them."""

import difflib
import math
import re
from collections.abc import Iterable
from functools import cache

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

_CUTOFF = 0.6
_DIGITS = re.compile(r"\d+")
_BRACKETS = re.compile(r"\[([^\]]*)\]")
_PART = re.compile(r"(?:[^,\[]|\[[^\]]*\])+")
_RANGE = re.compile(r"(\d+)-(\d+)", re.ASCII)
# No set of nodes is larger: a slip of the pen such as [1-99999999] must not fill the memory.
_MOST_NODES = 2**20
_MOST_DIGITS = 9


def fold(names: Iterable[str]) -> str:
    """Fold node names: gpu01, gpu02 → `gpu[01-02]`; empty for none.

    Names that no node can have, which only a message about them says, are listed as they are.
    """
    given = list(names)
    try:
        return str(NodeSet.fromlist(given, resolver=RESOLVER_NOGROUP))
    except (NodeSetException, ValueError):
        return ", ".join(given)


@cache
def unfold(nodes: str) -> tuple[str, ...] | None:
    """Expand node names as Slurm writes them, `gpu[01-02]`; None for what is no node set.

    One that is larger than any site is none either.
    """
    if _most(nodes) > _MOST_NODES:
        return None
    try:
        return tuple(NodeSet(nodes, resolver=RESOLVER_NOGROUP))
    except (NodeSetException, ValueError):
        return None


def _most(nodes: str) -> int:
    """Count the nodes that a text names, without naming them; those named twice count twice."""
    return sum(
        math.prod(_size(inside) for inside in _BRACKETS.findall(part))
        for part in _PART.findall(nodes)
    )


def _size(inside: str) -> int:
    size = 1 + inside.count(",")
    for first, last in _RANGE.findall(inside):
        if max(len(first), len(last)) > _MOST_DIGITS:
            return _MOST_NODES + 1
        size += max(0, int(last) - int(first))
    return size


def nearest(name: str, known: Iterable[str], *, cutoff: float = _CUTOFF) -> str | None:
    """Find the known name that `name` was probably meant to be.

    Names that differ in digits only (gpu02, gpu03) are meant as they stand.
    """
    letters = _DIGITS.sub("", name)
    others = sorted({other for other in known if _DIGITS.sub("", other) != letters})
    found = difflib.get_close_matches(name, others, n=1, cutoff=cutoff)
    return found[0] if found else None


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """Write a hint: the nearest name, or else what `otherwise` says."""
    found = nearest(name, known)
    return f"did you mean {found}?" if found else otherwise
