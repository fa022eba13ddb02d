"""From pairs that failed to sentences: a node that is to blame is told once, else each pair."""

from collections.abc import Collection, Mapping

from hpcsite.site.names import fold
from hpcsite.verify.judge import culprits as judge
from hpcsite.verify.results import Culprit, CulpritKind, Direction
from hpcsite.verify.rounds import Pair


def culprits(failed: Collection[Pair], passed: Collection[Pair]) -> tuple[Culprit, ...]:
    """Return whom pairs that failed or passed as a whole blame."""
    values = [judge.PairValue(pair, None) for pair in failed]
    values += [judge.PairValue(pair, 1.0) for pair in passed]
    return judge.culprits(values, Direction.HIGHER)


def told(faults: Mapping[Pair, str], blamed: Collection[Culprit]) -> list[str]:
    """Say what is wrong with pairs: once for a node that fails with its partners, else by pair."""
    nodes = [one.name for one in blamed if one.kind is CulpritKind.NODE]
    said = []
    for node in nodes:
        mine = {pair: why for pair, why in faults.items() if node in pair}
        partners = {one for pair in mine for one in pair} - {node}
        said.append(
            f"{node} fails with {len(partners)} partners ({fold(sorted(partners))}): "
            + "; ".join(dict.fromkeys(mine.values()))
        )
    return said + [
        f"between {one} and {other}: {why}"
        for (one, other), why in faults.items()
        if one not in nodes and other not in nodes
    ]
