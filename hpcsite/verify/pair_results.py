"""From what the two sides of a pair said to figures, faults and what could not be told. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hpcsite.verify.parsers import UnreadableError
from hpcsite.verify.parsers.perftest import (
    Bandwidth,
    Latency,
    Used,
    read_bandwidth,
    read_latency,
)
from hpcsite.verify.parsers.rdma_links import ETHERNET, Port
from hpcsite.verify.parsers.rdma_pair import Side, Test
from hpcsite.verify.rounds import Pair
from hpcsite.verify.spread import NodeAnswer
from hpcsite.verify.transport import KILLED, TIMED_OUT

# perftest's word for InfiniBand and RoCE alike; iWARP adapters say IW.
_TRANSPORT = "IB"
# What a side says when the other one does not listen, or has gone (perftest's sources).
_OF_THE_OTHER = ("Couldn't connect", "Couldn't read remote address", "Unable to read to socket")


class Rail(NamedTuple):
    """Two ports that face each other, and the index of the GID that each is to use."""

    ports: tuple[Port, Port]
    gids: tuple[int | None, ...]
    nodes: Pair
    soft: bool

    @property
    def unfit_node(self) -> str:
        """The node whose port cannot be used; empty if both can."""
        for node, port, gid in zip(self.nodes, self.ports, self.gids, strict=True):
            if port.layer == ETHERNET and gid is None:
                return node
        return ""

    @property
    def unfit(self) -> str:
        """Why it cannot be used; empty if it can."""
        if not (node := self.unfit_node):
            return ""
        port = self.ports[self.nodes.index(node)]
        return (
            f"{node}: {port.name} has no address for RoCE v2 (no GID of that type in sysfs); "
            "does its interface have an IP address?"
        )

    @property
    def options(self) -> tuple[str, str]:
        """Options of perftest for both ends."""
        first, second = (
            f"-d {port.device} -i {port.number}" + ("" if gid is None else f" -x {gid}")
            for port, gid in zip(self.ports, self.gids, strict=True)
        )
        return first, second

    @property
    def rate_gbit_s(self) -> float:
        """What the link can carry: the slower of its ports; 0 where none was told."""
        return min(port.rate_gbit_s for port in self.ports)


@dataclass
class PairResult:
    """What was measured of a pair, by rail, and what was not."""

    bandwidth: list[tuple[Rail, Bandwidth]] = field(default_factory=list)
    latency: list[tuple[Rail, Latency]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


def result_of(
    pair: Pair, answer: NodeAnswer, sides: Mapping[str, Side], rails: Sequence[Rail]
) -> PairResult:
    """Read a pair's answer. Each rail had a bandwidth test, then a latency test."""
    found = PairResult()
    if answer.not_started:
        found.unknown.append(answer.not_started)
        return found
    if absent := [node for node in pair if node not in sides]:
        why = "no answer in time" if answer.rc in (TIMED_OUT, KILLED) else answer.complaint
        found.unknown.append(f"the job did not begin on {' and '.join(absent)}: {why}")
        return found
    if lacking := [f"{s.node} has no {s.missing}" for s in sides.values() if s.missing]:
        found.unknown += lacking
        return found
    server, client = (sides[node] for node in pair)
    for number, rail in enumerate(rails):
        tests = [_at(client, 2 * number + offset) for offset in (0, 1)]
        for offset, test in enumerate(tests):
            if test is None or test.rc != 0:
                found.faults.append(_why_failed(server, client, 2 * number + offset))
                return found
            _read(found, rail, test, bandwidth=offset == 0)
    return found


def _at(side: Side, number: int) -> Test | None:
    return side.tests[number] if number < len(side.tests) else None


def _why_failed(server: Side, client: Side, number: int) -> str:
    """Say which side complains of itself; one that only misses the other is not the culprit."""
    said = [(side, test) for side in (server, client) if (test := _at(side, number))]
    ended = [(side, test) for side, test in said if test.rc not in (None, 0)]
    own = [
        (side, test)
        for side, test in ended
        if test.rc != TIMED_OUT and not any(words in test.text for words in _OF_THE_OTHER)
    ]
    # Of two that miss each other, the one that calls says more.
    for side, test in (*own, *reversed(ended), *reversed(said)):
        return f"{test.tool} on {side.node}: {test.complaint}"
    return f"no traffic in time between {server.node} and {client.node}"


def _read(found: PairResult, rail: Rail, test: Test, *, bandwidth: bool) -> None:
    try:
        if bandwidth:
            read = read_bandwidth(test.text)
            found.bandwidth.append((rail, read))
            used = read.used
        else:
            latency = read_latency(test.text)
            found.latency.append((rail, latency))
            used = latency.used
    except UnreadableError as error:
        found.unknown.append(f"{test.tool} between {' and '.join(rail.nodes)}: {error}")
        return
    if fault := _other(used, rail):
        found.faults.append(f"{test.tool} {fault}")


def _other(used: Used, rail: Rail) -> str:
    """Say that a test went over something else than the RDMA device; empty if it did not."""
    device = rail.ports[1].device
    if used.device != device or used.transport != _TRANSPORT:
        return f"went over {used.device} ({used.transport}), not over {device} ({_TRANSPORT})"
    return ""
