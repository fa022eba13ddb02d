"""Suite `tcp`: TCP between all pairs of nodes, also on a site without RDMA."""

from hpcsite.verify import tcp as pairs_by_tcp
from hpcsite.verify.claims import Claim, Mode
from hpcsite.verify.context import Context
from hpcsite.verify.engine import Check
from hpcsite.verify.findings import Finding, Tally
from hpcsite.verify.results import Culprit, CulpritKind, Measurement
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
    return _finding(context, pairs_by_tcp.BANDWIDTH, "tcp_bandwidth", "Gb/s")


def find_latency(context: Context) -> Finding:
    """Every pair answers over TCP, and none needs much longer than the others."""
    return _finding(context, pairs_by_tcp.LATENCY, "tcp_latency", "us")


def _finding(context: Context, name: str, called: str, unit: str) -> Finding:
    found = pairs_by_tcp.pairs(context)
    blamed = pairs_by_tcp.blamed(context, found, name, unit)
    tally = Tally([said(each) for each in blamed], list(found.unknown))
    tally.wrong += [f"{' and '.join(pair)}: {why}" for pair, why in found.faults.items()]
    if not found.figures and not tally.wrong and not tally.unknown:
        tally.unknown.append("no pair of nodes could be tried")
    return tally.finding(
        context.cluster.declared,
        reason="; ".join([*found.left_out, NO_REFERENCE]),
        measurements=[
            Measurement(
                name=called,
                value=getattr(one, name),
                unit=unit,
                direction=pairs_by_tcp.DIRECTIONS[name],
                at={"nodes": ",".join(pair)},
            )
            for pair, one in found.figures.items()
        ],
        culprits=blamed,
        remedy=remedy(blamed[0]) if blamed else "",
    )


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
