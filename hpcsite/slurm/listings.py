"""Reading the text of squeue and scontrol, which every release of Slurm prints alike. Pure."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from hpcsite.slurm.conf import expand

# `squeue --noheader --format '%i|%N'`: the job and the nodes that it holds.
# `scontrol --oneliner show node`: a node a line, the reason last.
_NODE = re.compile(
    r"^NodeName=(?P<name>\S+) .*?\bState=(?P<state>\S+)"
    r"(?:.*?\bReason=(?P<reason>.*?)(?: \[[^\s\]]+@[^\s\]]+\]|$))?"
)
_NOT_HEARD = frozenset({"NOT_RESPONDING", "UNKNOWN"})
# States in which a node that slurmctld hears takes no job, other than a drain.
_BAD = frozenset({"DOWN", "ERROR", "FAIL", "INVAL", "INVALID", "INVALID_REG"})


@dataclass(frozen=True)
class NodeState:
    """What slurmctld holds of a node."""

    name: str
    states: frozenset[str]
    reason: str = ""

    @property
    def drained(self) -> bool:
        """Whether somebody drained it."""
        return "DRAIN" in self.states

    @property
    def heard(self) -> bool:
        """Whether slurmctld hears its slurmd."""
        return bool(self.states) and not self.states & _NOT_HEARD

    @property
    def fault(self) -> str:
        """Why it takes no jobs although nobody drained it; empty where it does."""
        if not self.heard:
            return "slurmctld does not hear it"
        if bad := self.states & _BAD:
            return f"it is {'+'.join(sorted(bad))}: {self.reason or 'no reason given'}"
        return ""


def read_node_states(text: str) -> dict[str, NodeState]:
    """Read `scontrol --oneliner show node`, by name. It shows nodes of no partition too."""
    return {state.name: state for state in _states(text)}


def _states(text: str) -> Iterator[NodeState]:
    for line in text.splitlines():
        if found := _NODE.match(line):
            # `DOWN*+DRAIN` in older releases: the star is NOT_RESPONDING.
            starred = {"NOT_RESPONDING"} if "*" in found["state"] else set()
            words = re.split(r"[+*~#!%$@^-]+", found["state"])
            states = frozenset({*filter(None, words), *starred})
            yield NodeState(found["name"], states, (found["reason"] or "").strip())


def to_drain(states: Mapping[str, NodeState], reasons: Mapping[str, str], mark: str) -> list[str]:
    """Choose the nodes that are to be drained, or whose reason has changed: node → reason.

    A node that somebody else drained, whose reason does not begin with `mark`, keeps its reason.
    """
    chosen = []
    for name, reason in reasons.items():
        state = states.get(name)
        ours = state is not None and state.drained and state.reason.startswith(mark)
        stale = ours and state is not None and state.reason.split() != reason.split()
        if state is None or not state.drained or stale:
            chosen.append(name)
    return chosen


def jobs_on(listing: str, nodes: Collection[str]) -> dict[str, list[str]]:
    """Find the jobs that hold some of the nodes: node → job ids."""
    wanted = dict.fromkeys(nodes)
    found: dict[str, list[str]] = {}
    for line in listing.splitlines():
        job, _, held = line.strip().partition("|")
        for node in expand(held):
            if node in wanted:
                found.setdefault(node, []).append(job)
    return found
