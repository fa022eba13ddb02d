"""Suite `tcp`: TCP between all pairs of nodes, also on a site without RDMA."""

from hpcsite.verify import tcp as pairs_by_tcp
from hpcsite.verify.claims import Claim, Mode
from hpcsite.verify.context import Context
from hpcsite.verify.engine import Check
from hpcsite.verify.findings import Finding, Tally
from hpcsite.verify.judge.culprits import culprits, slow_pairs
from hpcsite.verify.results import Culprit, CulpritKind, Direction, Measurement
from hpcsite.verify.suites import needs

NO_REFERENCE = (
    "no reference for TCP: pairs are held against each other, and a few say little of all"
)
_REMEDY = {
    CulpritKind.NODE: "look at {name}: its cable and port, MTU, `ethtool -S`, and what runs there",
    CulpritKind.LINK: "look at what lies between {name}: routes and switch ports of both",
    CulpritKind.LEAF: "look at the uplinks of {name}",
    CulpritKind.RAIL: "look at the rail {name}: its switch, and the port on each node",
}


def find_bandwidth(context: Context) -> Finding:
    """Every pair passes TCP both ways, and none is much slower than the others."""
    return _finding(context, "slower_gbit_s", Direction.HIGHER, "Gb/s")


def find_latency(context: Context) -> Finding:
    """Every pair answers over TCP, and none needs much longer than the others."""
    return _finding(context, "latency_us", Direction.LOWER, "us")


def _finding(context: Context, name: str, direction: Direction, unit: str) -> Finding:
    found = pairs_by_tcp.pairs(context)
    values, floor = found.values(name), pairs_by_tcp.floor_of(context)
    if direction is Direction.LOWER:
        # Small numbers: a busy CPU alone doubles them.
        floor = max(4 * floor, 1.0)
    blamed = culprits(
        values, direction, leaf_of=pairs_by_tcp.leaves(context), unit=unit, floor=floor
    )
    tally = Tally(unknown=list(found.unknown))
    slow = slow_pairs(values, direction, floor=floor)
    if slow:
        tally.wrong += [said(each) for each in blamed]
        tally.wrong += [f"{' and '.join(pair)}: {why}" for pair, why in found.faults.items()]
    if not found.figures and not tally.wrong and not tally.unknown:
        tally.unknown.append("no pair of nodes could be tried")
    return tally.finding(
        context.cluster.declared,
        reason="; ".join([*found.left_out, NO_REFERENCE]),
        measurements=list(_measurements(found, name, direction, unit)),
        culprits=blamed,
        remedy=remedy(blamed[0]) if blamed else "",
    )


def _measurements(
    found: pairs_by_tcp.TcpPairs, name: str, direction: Direction, unit: str
) -> list[Measurement]:
    called = "tcp_bandwidth" if direction is Direction.HIGHER else "tcp_latency"
    return [
        Measurement(
            name=called,
            value=getattr(one, name),
            unit=unit,
            direction=direction,
            at={"nodes": ",".join(pair)},
        )
        for pair, one in found.figures.items()
    ]


def said(culprit: Culprit) -> str:
    """Say whom the pairs blame, in a sentence."""
    kind, sure = culprit.kind.value, culprit.certainty.value
    return f"{kind} {culprit.name} ({sure}): {culprit.because}"


def remedy(culprit: Culprit) -> str:
    """Say what to do about a culprit."""
    return _REMEDY[culprit.kind].format(name=culprit.name)


def _busy(context: Context) -> Claim:
    return Claim(frozenset(context.cluster.declared), Mode.BUSY)


CHECKS = (
    Check(
        "tcp",
        "bandwidth",
        "Every pair of nodes passes TCP, and none is much slower than the others.",
        find_bandwidth,
        (needs.compute_nodes(2),),
        _busy,
    ),
    Check(
        "tcp",
        "latency",
        "Every pair of nodes answers over TCP, and none much later than the others.",
        find_latency,
        (needs.compute_nodes(2),),
        _busy,
    ),
)
