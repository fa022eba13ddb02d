"""How often the rule for outliers blames a healthy cluster, and finds a slow node, by size.

    bench/small_n.py [--clusters 10000]

Values are drawn from a normal distribution whose standard deviation is a fifth of the rule's floor,
the widest for which a rate is stated, and the planted node is worse by three times the floor.
"""

import argparse
import json
import random

from hpcsite.verify.judge.outliers import FLOOR, outliers
from hpcsite.verify.results import Direction

SIZES = (3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64)


def rates(clusters: int, seed: int = 1) -> dict[str, float]:
    """Draw clusters of all sizes by turns; the parts with false outliers and of nodes missed."""
    chance = random.Random(seed)  # noqa: S311 - a simulation
    false = missed = 0
    for number in range(clusters):
        count = SIZES[number % len(SIZES)]
        values = {f"n{node}": chance.gauss(1, FLOOR / 5) for node in range(count)}
        false += bool(outliers(values, Direction.HIGHER))
        slow = {**values, "n0": values["n0"] - 3 * FLOOR}
        missed += outliers(slow, Direction.HIGHER) != ("n0",)
    return {"false_outliers": false / clusters, "missed": missed / clusters}


def main() -> None:
    """Print the rates as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=10_000)
    options = parser.parse_args()
    print(json.dumps({"clusters": options.clusters, **rates(options.clusters)}, indent=2))


if __name__ == "__main__":
    main()
