"""What the checks of the fabric share: links of all nodes and tests of all pairs, asked once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files

from hpcsite.site.rdma import Rdma, rdma_of
from hpcsite.verify.cluster import Target
from hpcsite.verify.context import Context
from hpcsite.verify.pair_results import PairResult, Rail, result_of
from hpcsite.verify.pairs import PairJob, run_pairs
from hpcsite.verify.parsers import UnreadableError
from hpcsite.verify.parsers.rdma_links import ETHERNET, NodeLinks, Port, read_links
from hpcsite.verify.parsers.rdma_pair import read_sides
from hpcsite.verify.rounds import Pair, rounds_of
from hpcsite.verify.spread import spread

BANDWIDTH, LATENCY = "ib_write_bw", "ib_write_lat"
# A message of 64 KiB, perftest's default, does not fill a fast link (linux-rdma/perftest#318).
# In software every byte costs CPU time: less is sent, so that a slow host is done in seconds.
_ADAPTER = {BANDWIDTH: "-s 8388608 -n 1000", LATENCY: "-s 2 -n 10000"}
_SOFTWARE = {BANDWIDTH: "-s 65536 -n 200", LATENCY: "-s 2 -n 100"}
# What one test may take, on a host that is as slow as an emulated one.
_TEST_S = 40
# Software RDMA ends a connection now and then that loses packets on a busy host (completion with
# "remote invalid request" after retransmissions, seen on Linux 6.12), so it is tried again; what
# each attempt said is in the raw output. An adapter has one attempt: there it is a fault.
_SOFT_TRIES = 3
# From here on, all pairs would take hours: each node meets this many others.
MOST_ROUNDS = 63


@dataclass
class Links:
    """Links by node; `failed` nodes did not run the job, `unknown` ones could not be asked."""

    known: dict[str, NodeLinks] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)


@dataclass
class Pairs:
    """Results by pair. `missing` are nodes that no pair could be tried with, with why."""

    results: dict[Pair, PairResult] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def wanted(context: Context) -> dict[str, Rdma]:
    """Return what compute nodes are to have for RDMA; without those that are to have none."""
    hosts = context.site.in_group("slurm_compute")
    return {host.name: rdma for host in hosts if (rdma := rdma_of(host))}


def links(context: Context) -> Links:
    """Return the links of all nodes with RDMA, asked once in a run."""
    return context.shared("rdma_links", _ask_links)


def pairs(context: Context) -> Pairs:
    """Return the results of all pairs, tested once in a run."""
    return context.shared("rdma_pairs", _test_pairs)


def targets(context: Context) -> list[Target]:
    """Return the nodes with RDMA that take jobs."""
    meant = wanted(context)
    return [target for target in context.cluster.targets if target.name in meant]


def script(name: str) -> str:
    """Text of a script of hpcsite's own."""
    return (files("hpcsite.verify") / "programs" / name).read_text(encoding="utf-8")


def _ask_links(context: Context) -> Links:
    found = Links()
    found.unknown |= context.cluster.reason_of(wanted(context))
    if not (asked := targets(context)):
        return found
    command = ["sh", "-c", script("rdma_links.sh"), "links"]
    for node, answer in spread(context, asked, command, "--mpi=none", name="links").items():
        if answer.not_started:
            found.unknown[node] = answer.not_started
        elif answer.rc != 0:
            found.failed[node] = f"{node} does not run a job: {answer.complaint}"
        else:
            try:
                found.known[node] = read_links(answer.stdout)
            except UnreadableError as error:
                found.unknown[node] = f"{node}: {error}"
    return found


def missing_port(node: str, known: NodeLinks, meant: Rdma) -> str:
    """Say which device of a node is not there or not up; empty if all are."""
    ports = known.meant(meant)
    there = ", ".join(dict.fromkeys(port.device for port in known.ports)) or "none"
    gone = [name for name in meant.devices if name not in {port.device for port in ports}]
    if gone or not ports:
        what = ", ".join(gone) or f"for {meant.mode}"
        return f"{node} has no RDMA device {what}; it has: {there}"
    down = [f"{port.name} is {port.state} ({port.physical})" for port in ports if not port.up]
    return f"{node}: {', '.join(down)}" if down else ""


def _test_pairs(context: Context) -> Pairs:
    found, known, meant = Pairs(), links(context), wanted(context)
    found.unknown += [*known.failed.values(), *known.unknown.values()]
    usable = []
    for target in targets(context):
        if (said := known.known.get(target.name)) is None:
            continue
        if why := missing_port(target.name, said, meant[target.name]):
            found.missing[target.name] = why
        else:
            usable.append(target)
    partitions = dict.fromkeys(target.partition for target in usable)
    if len(partitions) > 1:
        found.left_out.append("nodes of different partitions were not tried with each other")
    for partition in partitions:
        _test_partition(context, [t for t in usable if t.partition == partition], found)
    return found


def _test_partition(context: Context, nodes: Sequence[Target], found: Pairs) -> None:
    by_name = {target.name: target for target in nodes}
    rounds = rounds_of(list(by_name))
    if not rounds:
        found.left_out.append(f"{nodes[0].name} was not tried: it is alone in its partition")
    if len(rounds) > MOST_ROUNDS:
        found.left_out.append(f"each node was tried with {MOST_ROUNDS} of {len(nodes) - 1} others")
    for number, met in enumerate(rounds[:MOST_ROUNDS], start=1):
        _test_round(context, number, met, by_name, found)


def _test_round(
    context: Context, number: int, met: Iterable[Pair], nodes: dict[str, Target], found: Pairs
) -> None:
    jobs, rails = [], {}
    for pair in met:
        rails[pair] = _rails(context, pair)
        if not rails[pair]:
            found.unknown.append(f"{pair[0]} and {pair[1]} have different numbers of RDMA ports")
            continue
        if unfit := next((rail for rail in rails[pair] if rail.unfit), None):
            found.missing[unfit.unfit_node] = unfit.unfit
            continue
        jobs.append(PairJob(pair, nodes[pair[0]].partition, _words(context, pair, rails[pair])))
    if not jobs:
        return
    tests = max(2 * len(rails[job.pair]) * _tries(rails[job.pair]) for job in jobs)
    answers = run_pairs(
        context,
        jobs,
        script("rdma_pair.sh"),
        runs_s=min(tests * _TEST_S, 10 * _TEST_S),
        name=f"round-{number}",
    )
    for pair, answer in answers.items():
        found.results[pair] = result_of(pair, answer, read_sides(answer.stdout), rails[pair])


def _rails(context: Context, pair: Pair) -> list[Rail]:
    """Return the ports of two nodes that face each other; none if their numbers differ."""
    known, meant = links(context), wanted(context)
    ends = [known.known[node].meant(meant[node]) for node in pair]
    soft = any(meant[node].mode == "soft_roce" for node in pair)
    if len(ends[0]) != len(ends[1]):
        return []
    return [
        Rail(
            ports=both,
            gids=tuple(
                port.gid_index(meant[node].interface) if port.layer == ETHERNET else None
                for node, port in zip(pair, both, strict=True)
            ),
            nodes=pair,
            soft=soft,
        )
        for both in zip(*ends, strict=True)
    ]


def _tries(rails: Sequence[Rail]) -> int:
    return _SOFT_TRIES if any(rail.soft for rail in rails) else 1


def _words(context: Context, pair: Pair, rails: Sequence[Rail]) -> tuple[str, ...]:
    server = context.cluster.nodes[pair[0]]
    words = [pair[0], server.address or server.name, str(_TEST_S), str(_tries(rails))]
    for rail in rails:
        for tool in (BANDWIDTH, LATENCY):
            size = (_SOFTWARE if rail.soft else _ADAPTER)[tool]
            report = " --report_gbits" if tool == BANDWIDTH else ""
            words += [tool, f"-F {size}{report}", *rail.options]
    return tuple(words)


def port_of(known: NodeLinks, meant: Rdma) -> Port:
    """Return the first port that the site means; it must be there."""
    return known.meant(meant)[0]
