"""Suite `fabric`: RDMA links are up and alike, and every pair of nodes passes traffic over them."""

from collections.abc import Iterable, Sequence

from hpcsite.site.names import fold
from hpcsite.site.rdma import Rdma
from hpcsite.verify import fabric
from hpcsite.verify.blame import culprits, told
from hpcsite.verify.claims import Claim, Mode
from hpcsite.verify.context import Context
from hpcsite.verify.engine import Check
from hpcsite.verify.findings import Finding, Tally
from hpcsite.verify.pair_results import PairResult, Rail
from hpcsite.verify.parsers.rdma_links import ACTIVE, ETHERNET, INFINIBAND, NodeLinks
from hpcsite.verify.rdma_limits import (
    CEILING_US,
    FLOOR_GBIT_S,
    bandwidth_reference,
    latency_reference,
)
from hpcsite.verify.results import Direction, Measurement, Property, Variant
from hpcsite.verify.rounds import Pair
from hpcsite.verify.suites import fabric_mpi, needs

_LAYER = {"infiniband": INFINIBAND, "roce": ETHERNET, "soft_roce": ETHERNET}
NO_REFERENCE = (
    "no reference for soft-RoCE, nor for less than 100 Gb/s: figures are shown, and traffic is all "
    "that is proved"
)


def find_links(context: Context) -> Finding:
    """See every RDMA device that the site means there, up, usable, and as on its peers."""
    found, meant = fabric.links(context), fabric.wanted(context)
    tally = Tally([*found.failed.values()], [*found.unknown.values()])
    for node, known in found.known.items():
        tally.wrong += link_faults(node, known, meant[node])
        if not known.asked_verbs:
            tally.unknown.append(f"{node} has no ibv_devinfo (package ibverbs-utils)")
    alike = list(_rates(context, found.known, meant))
    tally.wrong += [uneven(one) for one in alike if not one.uniform]
    if not found.known and not tally.wrong and not tally.unknown:
        tally.unknown.append("no node was asked")
    return tally.finding(meant, properties=alike)


def link_faults(node: str, known: NodeLinks, meant: Rdma) -> list[str]:
    """Say what is wrong with a node's links."""
    if known.memlock != "unlimited":
        limit = f"{node}: a job may lock {known.memlock} KiB of memory only; RDMA needs more"
        faults = [f"{limit} (slurmd's LimitMEMLOCK, PropagateResourceLimitsExcept=MEMLOCK)"]
    else:
        faults = []
    if why := fabric.missing_port(node, known, meant):
        return [why, *faults]
    for port in known.meant(meant):
        layer = _LAYER[meant.mode]
        if port.layer != layer:
            faults.append(f"{node}: {port.name} is {port.layer}, not {layer}")
        if port.layer == ETHERNET and port.gid_index(meant.interface) is None:
            faults.append(f"{node}: {port.name} has no address for RoCE v2 on {meant.interface}")
        if known.asked_verbs and port.device not in known.seen:
            why = known.complaint or "it is not listed as active"
            faults.append(f"{node}: programs cannot use {port.device} (ibv_devinfo: {why})")
        told = known.link_states.get(f"{port.device}:{port.number}", ACTIVE)
        if told != ACTIVE:
            faults.append(f"{node}: `rdma link` says that {port.name} is {told}")
    return faults


def _rates(
    context: Context, known: dict[str, NodeLinks], meant: dict[str, Rdma]
) -> Iterable[Property]:
    """Rate and port state of each device over the nodes of a group, most common first."""
    said: dict[str, dict[str, list[str]]] = {}
    for node, links in known.items():
        group = context.cluster.group_of(node)[0]
        for port in links.meant(meant[node]):
            name = f"{group} {port.name}".strip()
            value = f"{port.rate_gbit_s:g} Gb/s, {port.state}"
            said.setdefault(name, {}).setdefault(value, []).append(node)
    for name, values in said.items():
        ordered = sorted(values, key=lambda value: -len(values[value]))
        yield Property(
            name=name,
            variants=tuple(Variant(value=v, nodes=fold(values[v])) for v in ordered),
        )


def uneven(one: Property) -> str:
    """Say that links differ where they should not, and where."""
    values = ", ".join(f"{v.nodes} {v.value}" for v in one.variants)
    return f"{one.name} is not the same everywhere: {values}"


def find_bandwidth(context: Context) -> Finding:
    """Every pair of nodes writes over RDMA, as fast as the link allows where that is known."""
    measured: list[Measurement] = []
    slow: dict[Pair, str] = {}
    found = fabric.pairs(context)
    for pair, result in found.results.items():
        for rail, read in result.bandwidth:
            reference = (
                None if rail.soft else bandwidth_reference(rail.rate_gbit_s, read.message_bytes)
            )
            one = Measurement(
                name="write_bandwidth",
                value=read.average_gbit_s,
                unit="Gb/s",
                direction=Direction.HIGHER,
                at=_at(pair, rail, read.message_bytes),
                reference=reference,
            )
            measured.append(one)
            if one.meets is False or one.value < FLOOR_GBIT_S:
                least = reference.value if reference else FLOOR_GBIT_S
                slow[pair] = f"{one.value:.4g} Gb/s over {_names(rail)}, at least {least:.4g}"
    return _pairs_finding(context, found, slow, measured)


def find_latency(context: Context) -> Finding:
    """Every pair of nodes writes a small message over RDMA, and how long that takes."""
    measured: list[Measurement] = []
    slow: dict[Pair, str] = {}
    found = fabric.pairs(context)
    for pair, result in found.results.items():
        for rail, read in result.latency:
            reference = (
                None if rail.soft else latency_reference(rail.rate_gbit_s, read.message_bytes)
            )
            for name, value in (
                ("write_latency", read.typical_us),
                ("write_latency_min", read.minimum_us),
                ("write_latency_p99", read.p99_us),
            ):
                one = Measurement(
                    name=name,
                    value=value,
                    unit="us",
                    direction=Direction.LOWER,
                    at=_at(pair, rail, read.message_bytes),
                    reference=reference if name == "write_latency" else None,
                )
                measured.append(one)
                if one.meets is False or (name == "write_latency" and value > CEILING_US):
                    most = reference.value if reference else CEILING_US
                    slow[pair] = f"{value:.4g} us over {_names(rail)}, at most {most:.4g}"
    return _pairs_finding(context, found, slow, measured)


def _at(pair: Pair, rail: Rail, message_bytes: int) -> dict[str, str | int | float]:
    return {
        "nodes": ",".join(pair),
        "device": _names(rail),
        "message_bytes": message_bytes,
        "link_gbit_s": rail.rate_gbit_s,
    }


def _names(rail: Rail) -> str:
    return "-".join(dict.fromkeys(port.device for port in rail.ports))


def _pairs_finding(
    context: Context, found: fabric.Pairs, slow: dict[Pair, str], measured: Sequence[Measurement]
) -> Finding:
    """Hold pairs together: who is to blame, what could not be told, what the figures mean."""
    faults = {pair: "; ".join(one.faults) for pair, one in found.results.items() if one.faults}
    faults |= {pair: why for pair, why in slow.items() if pair not in faults}
    good = [pair for pair, one in found.results.items() if pair not in faults and sound(one)]
    blamed = culprits(faults, good)
    tally = Tally([*found.missing.values(), *told(faults, blamed)], list(found.unknown))
    for one in found.results.values():
        tally.unknown += one.unknown
    if not measured and not tally.wrong and not tally.unknown:
        tally.unknown.append("no pair of nodes with RDMA could be tried")
    rails = [rail for one in found.results.values() for rail, _ in one.bandwidth]
    free = any(rail.soft or bandwidth_reference(rail.rate_gbit_s, 1) is None for rail in rails)
    return tally.finding(
        fabric.wanted(context),
        reason="; ".join([*found.left_out, *([NO_REFERENCE] if free else [])]),
        measurements=measured,
        culprits=blamed,
    )


def sound(one: PairResult) -> bool:
    """Whether a pair was measured whole."""
    return bool(one.bandwidth and one.latency) and not one.faults and not one.unknown


def _light(context: Context) -> Claim:
    return Claim(frozenset(fabric.wanted(context)), Mode.LIGHT)


def _busy(context: Context) -> Claim:
    return Claim(frozenset(fabric.wanted(context)), Mode.BUSY)


CHECKS = (
    Check(
        "fabric",
        "links",
        "Every RDMA link is up, usable by programs, and the same on all nodes of a group.",
        find_links,
        (needs.rdma_nodes(1),),
        _light,
    ),
    Check(
        "fabric",
        "write_bw",
        "Every pair of nodes writes over RDMA at the bandwidth of its link.",
        find_bandwidth,
        (needs.rdma_nodes(2),),
        _busy,
    ),
    Check(
        "fabric",
        "write_lat",
        "Every pair of nodes writes small messages over RDMA without delay.",
        find_latency,
        (needs.rdma_nodes(2),),
        _busy,
    ),
    *fabric_mpi.checks(_busy),
)
