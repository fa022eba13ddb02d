"""The nearest known name to a mistyped one, and sets of node names as Slurm writes them."""

import difflib
import re
from collections.abc import Iterable
from functools import cache

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

_CUTOFF = 0.6
_DIGITS = re.compile(r"\d+")


def fold(names: Iterable[str]) -> str:
    """Fold node names: gpu01, gpu02 → `gpu[01-02]`; empty for none."""
    return str(NodeSet.fromlist(list(names), resolver=RESOLVER_NOGROUP))


@cache
def unfold(nodes: str) -> tuple[str, ...] | None:
    """Expand node names as Slurm writes them, `gpu[01-02]`; None for what is no node set."""
    try:
        return tuple(NodeSet(nodes, resolver=RESOLVER_NOGROUP))
    except NodeSetException:
        return None


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
