"""Which of several equal things is worse than its peers: median and MAD, with a floor.

With n values |z| is at most (n-1)/sqrt(n) for mean and standard deviation, so that such rules never
fire for a handful of nodes. The median absolute deviation (MAD) of a value's peers, without itself,
does from three on, but it is zero or tiny by chance where there are few values; the floor keeps it
from condemning noise.

While the healthy spread (one standard deviation, relative to the median) is at most a fifth of the
floor, fewer than one healthy cluster in 1,000 of 3 to 64 nodes has a false outlier, and a node that
is worse by three times the floor is found (`bench/small_n.py` prints both).
"""

from collections.abc import Mapping
from statistics import median

from hpcsite.verify.results import Direction

LEAST = 3
FLOOR = 0.05
# MADs of a normal distribution in one standard deviation of it.
_MAD_TO_SIGMA = 1.4826
_SIGMAS = 4.0


def outliers(
    values: Mapping[str, float], direction: Direction, *, floor: float = FLOOR
) -> tuple[str, ...]:
    """Return the names whose value is worse than those of their peers, the worst first.

    `floor` is the least difference to the median that counts, as a part of it. What is better than
    its peers is no outlier. Fewer than three values have no peers: nothing is returned.
    """
    if len(values) < LEAST:
        return ()
    sign = 1 if direction is Direction.HIGHER else -1
    found: dict[str, float] = {}
    ordered = sorted(values.values())
    all_middle = median(ordered)
    for name, value in values.items():
        if sign * (all_middle - value) <= 0:
            continue
        peers = list(ordered)
        peers.remove(value)
        middle = median(peers)
        spread = _MAD_TO_SIGMA * median(abs(peer - middle) for peer in peers)
        lag = sign * (middle - value)
        if lag > max(abs(middle) * floor, _SIGMAS * spread):
            found[name] = lag
    return tuple(sorted(found, key=lambda name: -found[name]))
