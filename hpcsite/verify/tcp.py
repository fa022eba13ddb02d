"""TCP between all pairs of nodes, tested once in a run: in rounds, and the slow ones once more."""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files

from hpcsite.site.topology import slurm_tree
from hpcsite.verify.cluster import Target
from hpcsite.verify.context import Context
from hpcsite.verify.judge.culprits import PairValue, slow_pairs
from hpcsite.verify.pairs import PairJob, run_pairs
from hpcsite.verify.parsers import UnreadableError
from hpcsite.verify.parsers.tcp_pair import TcpPair, read_tcp_pair
from hpcsite.verify.results import Direction
from hpcsite.verify.rounds import Pair, rounds_of
from hpcsite.verify.spread import NodeAnswer

# Each way is measured for so long.
_SECONDS = 0.5
# A slow pair's buffers drain after the last block, and one side may start later than the other.
_TEST_S = 50
# As for RDMA: beyond, all pairs would take hours.
MOST_ROUNDS = 63
# Machines of a lab share one computer, whose other work slows any pair at any moment.
_FLOOR, _FLOOR_IN_LABS = 0.2, 0.6


@dataclass
class TcpPairs:
    """Figures by pair; `faults` of pairs without traffic, `unknown` what could not be told."""

    figures: dict[Pair, TcpPair] = field(default_factory=dict)
    faults: dict[Pair, str] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    again: set[Pair] = field(default_factory=set)

    def values(self, name: str) -> list[PairValue]:
        """Return what each pair reached, None for those without traffic."""
        measured = [PairValue(pair, getattr(one, name)) for pair, one in self.figures.items()]
        return measured + [PairValue(pair, None) for pair in self.faults]


def floor_of(context: Context) -> float:
    """Return the part by which a pair must be worse than healthy ones to count."""
    return _FLOOR if context.site.keys.lab is None else _FLOOR_IN_LABS


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
    """Test slow pairs once more, one after the other: of two results the better one counts.

    What else a node did at that moment is over by then; what is broken is still slow.
    """
    values = found.values("slower_gbit_s")
    for one in slow_pairs(values, Direction.HIGHER, floor=floor_of(context)):
        found.again.add(one.pair)
        second = TcpPairs()
        _take(second, _run(context, [one.pair], f"tcp-again-{'-'.join(one.pair)}"))
        if one.pair not in second.figures:
            continue
        now, before = second.figures[one.pair], found.figures.get(one.pair)
        found.faults.pop(one.pair, None)
        if before is None or now.slower_gbit_s > before.slower_gbit_s:
            found.figures[one.pair] = now


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
