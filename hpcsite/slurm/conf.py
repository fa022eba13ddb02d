"""Reading slurm.conf: its keys, nodes and partitions. Pure; writes nothing.

Slurm's files hold `Key=Value` pairs, keys in any case, `#` comments, and lines continued by a
backslash (slurm.conf(5)). A line that begins with NodeName or PartitionName describes those; other
lines set the cluster's own keys.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

_PAIR = re.compile(r'(?P<key>[A-Za-z_]\w*)\s*\+?=\s*(?P<value>"[^"]*"|\S*)')
_INCLUDE = re.compile(r"include\s+(?P<file>\S+)", re.IGNORECASE)
_COMMENT = re.compile(r"(?<!\\)#.*$")

# Keys that stand on several lines, all of which count; of other keys the last one does.
REPEATED = frozenset({"slurmctldhost"})

Line = dict[str, str]


@dataclass(frozen=True)
class SlurmConf:
    """A parsed slurm.conf. Every key is in lower case.

    A node's line holds what a `NodeName=DEFAULT` line above it gives it. The values of a key that
    stands on several lines are joined by blanks. `includes` are files that the text names and that
    were not read.
    """

    keys: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, Line] = field(default_factory=dict)
    partitions: dict[str, Line] = field(default_factory=dict)
    includes: list[str] = field(default_factory=list)


def parse_slurm_conf(text: str) -> SlurmConf:
    """Parse a slurm.conf. Lines that cannot be read are left out: the file may be foreign."""
    conf = SlurmConf()
    defaults: Line = {}
    for line in _lines(text):
        if include := _INCLUDE.match(line):
            conf.includes.append(include["file"])
            continue
        pairs = {m["key"].lower(): m["value"].strip('"') for m in _PAIR.finditer(line)}
        if "nodename" in pairs:
            names = pairs.pop("nodename")
            if names.upper() == "DEFAULT":
                defaults |= pairs
                continue
            for name in expand(names):
                conf.nodes[name] = defaults | pairs
        elif "partitionname" in pairs:
            conf.partitions[pairs.pop("partitionname")] = pairs
        else:
            for key in REPEATED & pairs.keys() & conf.keys.keys():
                pairs[key] = f"{conf.keys[key]} {pairs[key]}"
            conf.keys.update(pairs)
    return conf


def expand(nodes: str) -> list[str]:
    """Node names of a Slurm host list, zero padding kept; none for what is no host list."""
    try:
        return list(NodeSet(nodes, resolver=RESOLVER_NOGROUP))
    except NodeSetException:
        return []


def fold(names: list[str]) -> str:
    """Slurm's short form of node names: `gpu[01-08]`."""
    if len(names) == 1:
        return names[0]
    return str(NodeSet.fromlist(names, resolver=RESOLVER_NOGROUP))


def _lines(text: str) -> Iterator[str]:
    for line in re.sub(r"\\\n", " ", text).splitlines():
        if stripped := _COMMENT.sub("", line).strip():
            yield stripped
