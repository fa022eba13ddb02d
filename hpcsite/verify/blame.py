"""From pairs that failed to the nodes that are to blame."""

from collections.abc import Collection, Mapping

from hpcsite.site.names import fold
from hpcsite.verify.rounds import Pair

# With one partner a node cannot be told from it: it takes two that failed with it.
_LEAST_PARTNERS = 2


def culprits(failed: Collection[Pair], passed: Collection[Pair]) -> dict[str, list[str]]:
    """Return nodes that failed with all of their partners, with these; a partner is not blamed.

    A node is to blame when each of its pairs failed and it has at least two partners, while its
    partners, among themselves, did not all fail. Where all pairs failed, no node stands out.
    """
    good = {node for pair in passed for node in pair}
    partners: dict[str, list[str]] = {}
    for one, other in failed:
        partners.setdefault(one, []).append(other)
        partners.setdefault(other, []).append(one)
    return {
        node: sorted(met)
        for node, met in partners.items()
        if node not in good and len(met) >= _LEAST_PARTNERS and any(n in good for n in met)
    }


def told(faults: Mapping[Pair, str], passed: Collection[Pair]) -> list[str]:
    """Say what is wrong with pairs: once for a node that fails with everybody, else by pair."""
    blamed = culprits(faults.keys(), passed)
    said = []
    for node, partners in blamed.items():
        whys = dict.fromkeys(why for pair, why in faults.items() if node in pair)
        said.append(
            f"{node} fails with each of its {len(partners)} partners ({fold(partners)}): "
            + "; ".join(whys)
        )
    for (one, other), why in faults.items():
        if one not in blamed and other not in blamed:
            said.append(f"between {one} and {other}: {why}")
    return said
