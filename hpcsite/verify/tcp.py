"""TCP between all pairs of nodes, tested once in a run: in rounds, and the slow ones once more.

Pairs are held against those of the same node groups and partition: a node with a slower adapter
than another group's is no fault.
"""

import math
import shlex
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files

from hpcsite.site.topology import slurm_tree
from hpcsite.verify.cluster import Target
from hpcsite.verify.context import Context
from hpcsite.verify.judge.culprits import PairValue, culprits, slow_pairs
from hpcsite.verify.pairs import PairJob, run_pairs
from hpcsite.verify.parsers import UnreadableError
from hpcsite.verify.parsers.tcp_pair import TcpPair, read_tcp_pair
from hpcsite.verify.results import Culprit, Direction
from hpcsite.verify.rounds import Pair, rounds_of
from hpcsite.verify.spread import NodeAnswer

# Each way is measured for so long.
_SECONDS = 0.5
# A slow pair's buffers drain after the last block, and one side may start later than the other.
_TEST_S = 50
# As for RDMA: beyond, all pairs would take hours.
MOST_ROUNDS = 63
# By how much a pair must be worse than healthy ones. Latencies of TCP are a few tens of us, which a
# busy CPU alone doubles. Machines of a lab share one computer, whose other work slows any pair.
_FLOORS = {Direction.HIGHER: 0.2, Direction.LOWER: 1.0}
_FLOORS_IN_LABS = {Direction.HIGHER: 0.6, Direction.LOWER: 3.0}
# Slow pairs are tried again for so long: dead ones, which take longest, come last.
_AGAIN_S = 180
BANDWIDTH, LATENCY = "slower_gbit_s", "latency_us"
DIRECTIONS = {BANDWIDTH: Direction.HIGHER, LATENCY: Direction.LOWER}


@dataclass
class TcpPairs:
    """Figures by pair; `faults` of pairs without traffic, `unknown` what could not be told."""

    figures: dict[Pair, TcpPair] = field(default_factory=dict)
    faults: dict[Pair, str] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def values(self, name: str) -> list[PairValue]:
        """Return what each pair reached, None for those without traffic."""
        measured = [PairValue(pair, getattr(one, name)) for pair, one in self.figures.items()]
        return measured + [PairValue(pair, None) for pair in self.faults]


def floor_of(context: Context, name: str) -> float:
    """Return the part by which a pair must be worse than healthy ones to count."""
    floors = _FLOORS if context.site.keys.lab is None else _FLOORS_IN_LABS
    return floors[DIRECTIONS[name]]


def alike(context: Context, found: TcpPairs, name: str) -> list[list[PairValue]]:
    """Return the values of pairs by the node groups and the partition of their nodes."""
    targets = {target.name: target for target in context.cluster.targets}
    kinds: dict[object, list[PairValue]] = {}
    for one in found.values(name):
        nodes = [targets[node] for node in one.pair]
        kind = (nodes[0].partition, frozenset(node.group for node in nodes))
        kinds.setdefault(kind, []).append(one)
    return list(kinds.values())


def slow(context: Context, found: TcpPairs, name: str) -> list[PairValue]:
    """Return the pairs that are slow among their like, the least slow first, dead ones last."""
    floor, direction = floor_of(context, name), DIRECTIONS[name]
    pairs_of = [slow_pairs(v, direction, floor=floor) for v in alike(context, found, name)]
    sign = 1 if direction is Direction.LOWER else -1
    return sorted(
        (one for some in pairs_of for one in some),
        key=lambda one: math.inf if one.value is None else sign * one.value,
    )


def blamed(context: Context, found: TcpPairs, name: str, unit: str) -> list[Culprit]:
    """Return whom the pairs blame, each once."""
    said: dict[tuple[str, str], Culprit] = {}
    for values in alike(context, found, name):
        for one in culprits(
            values,
            DIRECTIONS[name],
            leaf_of=leaves(context),
            unit=unit,
            floor=floor_of(context, name),
        ):
            said.setdefault((one.kind.value, one.name), one)
    return list(said.values())


def leaves(context: Context) -> dict[str, str]:
    """Return the leaf switch of each compute node; empty where the site does not say it of all."""
    tree = slurm_tree(context.site.keys, context.cluster.declared)
    found = {node: leaf.name for leaf in tree.leaves for node in leaf.nodes}
    return found if all(node in found for node in context.cluster.declared) else {}


def pairs(context: Context) -> TcpPairs:
    """Return the results of all pairs."""
    return context.shared("tcp_pairs", _test)


def _test(context: Context) -> TcpPairs:
    found = TcpPairs(unknown=list(context.cluster.blocked))
    by_partition: dict[str, list[Target]] = {}
    for target in context.cluster.targets:
        by_partition.setdefault(target.partition, []).append(target)
    if len(by_partition) > 1:
        found.left_out.append("nodes of different partitions were not tried with each other")
    for nodes in by_partition.values():
        _test_partition(context, nodes, found)
    _try_again(context, found)
    return found


def _test_partition(context: Context, nodes: Sequence[Target], found: TcpPairs) -> None:
    rounds = rounds_of([target.name for target in nodes], leaves(context))
    if not rounds:
        found.left_out.append(f"{nodes[0].name} was not tried: it is alone in its partition")
    if len(rounds) > MOST_ROUNDS:
        found.left_out.append(f"each node was tried with {MOST_ROUNDS} of {len(nodes) - 1} others")
    for number, met in enumerate(rounds[:MOST_ROUNDS], start=1):
        _take(found, _run(context, met, f"tcp-round-{number}"))


def _try_again(context: Context, found: TcpPairs) -> None:
    """Test slow pairs once more, one after the other: the better one of two figures counts.

    What else a node did at that moment is over by then; what is broken is still slow.
    """
    wanted = {one.pair: None for name in DIRECTIONS for one in slow(context, found, name)}
    end = time.monotonic() + _AGAIN_S
    for pair in sorted(wanted, key=lambda pair: pair in found.faults):
        if time.monotonic() > end:
            return
        second = TcpPairs()
        _take(second, _run(context, [pair], f"tcp-again-{'-'.join(pair)}"))
        if (now := second.figures.get(pair)) is not None:
            before = found.figures.get(pair)
            found.faults.pop(pair, None)
            found.figures[pair] = now if before is None else now.better(before)


def _run(context: Context, met: Iterable[Pair], name: str) -> dict[Pair, NodeAnswer]:
    partitions = {target.name: target.partition for target in context.cluster.targets}
    program = (files("hpcsite.verify") / "programs" / "tcp_pair.py").read_text(encoding="utf-8")
    jobs = []
    for pair in met:
        server = context.cluster.nodes[pair[0]]
        words = (pair[0], server.address or server.name, str(_SECONDS))
        jobs.append(PairJob(pair, partitions[pair[0]], words))
    script = f'exec python3 -c {shlex.quote(program)} "$@"'
    return run_pairs(context, jobs, script, runs_s=_TEST_S, name=name)


def _take(found: TcpPairs, answers: dict[Pair, NodeAnswer]) -> None:
    for pair, answer in answers.items():
        if answer.not_started:
            found.unknown.append(answer.not_started)
            continue
        try:
            found.figures[pair] = read_tcp_pair(answer.stdout)
        except UnreadableError as error:
            if "python3" in answer.stderr and "not found" in answer.stderr:
                found.unknown.append(f"{' and '.join(pair)}: no python3")
            elif '"error"' in answer.stdout:
                found.faults[pair] = str(error)
            else:
                why = answer.complaint if answer.rc else str(error)
                found.unknown.append(f"{' and '.join(pair)}: {why}")
