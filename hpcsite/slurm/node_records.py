"""Reading nodes and partitions from Slurm's JSON, or from the text of a scontrol without it.

Fields move and go between Slurm versions, so what is missing is empty here, never an error; only
a text that is none of Slurm's raises `SlurmOutputError`. Memory is in MiB, as in Slurm.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

# States in which a node takes no job, whatever its base state says (slurm.conf(5), sinfo(1)).
UNUSABLE = frozenset(
    {
        "BLOCKED",
        "DOWN",
        "DRAIN",
        "ERROR",
        "FAIL",
        "FUTURE",
        "INVALID",
        "INVALID_REG",
        "MAINTENANCE",
        "NOT_RESPONDING",
        "POWERED_DOWN",
        "POWERING_DOWN",
        "POWER_DOWN",
        "REBOOT_ISSUED",
        "REBOOT_REQUESTED",
        "UNKNOWN",
    }
)
# Those of them that nobody asked for (sinfo(1), NODE STATE CODES).
BROKEN = frozenset(
    {"DOWN", "ERROR", "FUTURE", "INVALID", "INVALID_REG", "NOT_RESPONDING", "UNKNOWN"}
)
# How the reason begins with which a deploy drains a node that breaks its contract.
DRAINED_BY_HPCSITE = "hpcsite:"


class SlurmOutputError(ValueError):
    """A Slurm command printed something other than its JSON."""


@dataclass(frozen=True)
class SlurmNode:
    """A node as slurmctld knows it."""

    name: str
    states: tuple[str, ...]
    reason: str
    cpus: int
    memory_mib: int
    gres: dict[str, int]
    partitions: tuple[str, ...]
    cpus_in_use: int
    memory_in_use_mib: int
    gres_in_use: dict[str, int]
    version: str
    # Where its slurmd listens; no port where scontrol leaves out the one of slurm.conf.
    address: str = ""
    port: str = ""
    # CPUs that jobs can have, and how many a core has.
    effective_cpus: int = 0
    cpus_per_core: int = 1
    sockets: int = 1

    @property
    def usable(self) -> bool:
        """Whether it takes jobs."""
        return bool(self.states) and UNUSABLE.isdisjoint(self.states)

    @property
    def set_aside(self) -> bool:
        """Whether it takes no jobs because somebody wants that, with nothing wrong seen.

        Drained (not by hpcsite itself), in maintenance, to be rebooted, powered down.
        """
        # A node that reboots does not answer, and becomes DOWN if that takes too long.
        seen = set(self.states) - ({"NOT_RESPONDING"} if "REBOOT_ISSUED" in self.states else set())
        wanted = bool(seen) and not self.usable and BROKEN.isdisjoint(seen)
        return wanted and not self.reason.startswith(DRAINED_BY_HPCSITE)

    def has_room(self, memory_mib: int) -> bool:
        """Whether a CPU, so much memory and a GPU, if it has GPUs, are free."""
        gpus = self.gres.get("gpu", 0)
        return (
            self.cpus_in_use < self.cpus
            and self.memory_in_use_mib + memory_mib <= self.memory_mib
            and (not gpus or self.gres_in_use.get("gpu", 0) < gpus)
        )

    @property
    def idle(self) -> bool:
        """Whether it runs nothing."""
        quiet = not self.cpus_in_use and not any(self.gres_in_use.values())
        return self.usable and quiet and "COMPLETING" not in self.states

    @property
    def condition(self) -> str:
        """Its state for a person, with the reason that was set."""
        state = "+".join(self.states) or "of unknown state"
        return f"{state} ({self.reason})" if self.reason else state


def read_json(text: str) -> dict[str, Any]:
    """Return the JSON that Slurm printed; what a login shell printed before it is skipped."""
    start = text.find("{")
    try:
        value = json.loads(text[start:]) if start >= 0 else None
    except ValueError as error:
        raise SlurmOutputError(f"Slurm's JSON cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise SlurmOutputError(
            f"Slurm printed no JSON, but {text[:80]!r}: it is older than 22.05, or built without"
        )
    return value


def read_nodes(text: str) -> dict[str, SlurmNode]:
    """Read `scontrol show nodes` with `--json` or `--oneliner`, by name."""
    if lines := _lines(text, "NodeName"):
        nodes = [_node_of_line(line) for line in lines]
    else:
        nodes = [_node(entry) for entry in read_json(text).get("nodes") or ()]
    return {node.name: node for node in nodes}


def read_up_partitions(text: str) -> tuple[str, ...]:
    """Names of the partitions that take jobs: `scontrol show partitions`, as `read_nodes`."""
    if lines := _lines(text, "PartitionName"):
        return tuple(
            _field(line, "PartitionName") for line in lines if _field(line, "State") == "UP"
        )
    return tuple(
        str(entry.get("name", ""))
        for entry in read_json(text).get("partitions") or ()
        if "UP" in _words((entry.get("partition") or {}).get("state"))
    )


def read_time_limits(text: str) -> dict[str, int]:
    """Minutes that a job may run in each partition that has a limit; as `read_nodes`."""
    if lines := _lines(text, "PartitionName"):
        said = {_field(line, "PartitionName"): _field(line, "MaxTime") for line in lines}
        return {name: _minutes(time) for name, time in said.items() if time[:1].isdigit()}
    limits = {}
    for entry in read_json(text).get("partitions") or ():
        time = (entry.get("maximums") or {}).get("time") or {}
        if time.get("set") and not time.get("infinite"):
            limits[str(entry.get("name", ""))] = int(time.get("number") or 0)
    return limits


def read_over_time_limits(text: str) -> dict[str, int]:
    """Minutes beyond a job's limit that a partition allows, where it says so; as `read_nodes`."""
    if lines := _lines(text, "PartitionName"):
        said = {_field(line, "PartitionName"): _field(line, "OverTimeLimit") for line in lines}
        return {name: int(time) for name, time in said.items() if time.isdecimal()}
    limits = {}
    for entry in read_json(text).get("partitions") or ():
        over = (entry.get("maximums") or {}).get("over_time_limit")
        if isinstance(over, int):
            limits[str(entry.get("name", ""))] = over
        elif isinstance(over, dict) and over.get("set"):
            limits[str(entry.get("name", ""))] = int(over.get("number") or 0)
    return limits


def _minutes(time: str) -> int:
    """`1-02:03:00` → 1563."""
    days, _, clock = time.rpartition("-")
    hours, minutes, _ = clock.split(":")
    return (int(days or 0) * 24 + int(hours)) * 60 + int(minutes)


def read_config(text: str) -> dict[str, str]:
    """Read `scontrol show config`, which has no JSON: `Key = value` lines."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {key.strip(): value.strip() for key, _, value in pairs}


def read_gres(text: str) -> dict[str, int]:
    """Count GRES by name over all types: `gpu:h100:6(S:0-1),gpu:l40s:2` → `{"gpu": 8}`."""
    counts: dict[str, int] = {}
    for entry in _split_outside_brackets(text):
        words = entry.partition("(")[0].split(":")
        if words[-1].isdigit() and len(words) > 1:
            counts[words[0]] = counts.get(words[0], 0) + int(words[-1])
    return counts


def _node(entry: dict[str, Any]) -> SlurmNode:
    return SlurmNode(
        name=str(entry.get("name", "")),
        states=_words(entry.get("state")),
        reason=str(entry.get("reason") or ""),
        cpus=int(entry.get("cpus") or 0),
        memory_mib=int(entry.get("real_memory") or 0),
        gres=read_gres(str(entry.get("gres") or "")),
        partitions=_words(entry.get("partitions")),
        cpus_in_use=int(entry.get("alloc_cpus") or 0),
        memory_in_use_mib=int(entry.get("alloc_memory") or 0),
        gres_in_use=read_gres(str(entry.get("gres_used") or "")),
        version=str(entry.get("version") or ""),
        address=str(entry.get("address") or ""),
        port=str(entry.get("port") or ""),
        effective_cpus=int(entry.get("effective_cpus") or entry.get("cpus") or 0),
        sockets=int(entry.get("sockets") or 1),
        cpus_per_core=_cpus_per_core(*(entry.get(key) for key in ("cpus", "sockets", "cores"))),
    )


def _cpus_per_core(
    cpus: int | str | None, sockets: int | str | None, cores_per_socket: int | str | None
) -> int:
    """Return 1 where Slurm was told to count a core as a CPU, else its threads."""
    cores = int(sockets or 0) * int(cores_per_socket or 0)
    return max(int(cpus or 0) // cores, 1) if cores else 1


def _lines(text: str, first: str) -> list[str]:
    """Return `--oneliner` lines, which begin with a known key; none for JSON."""
    return [line for line in text.splitlines() if line.startswith(f"{first}=")]


def _node_of_line(line: str) -> SlurmNode:
    allocated = dict(pair.split("=", 1) for pair in _field(line, "AllocTRES").split(",") if pair)
    # The reason holds spaces and ends with who set it and when: `fan is loud [root@2026-11-30T…]`.
    reason = re.search(r" Reason=(.*?)(?: \[\S+@\S+\]|$)", line)
    state = _field(line, "State")
    return SlurmNode(
        name=_field(line, "NodeName"),
        states=_words(state.replace("*", "")) + (("NOT_RESPONDING",) if "*" in state else ()),
        reason=reason[1].strip() if reason else "",
        cpus=int(_field(line, "CPUTot") or 0),
        memory_mib=int(_field(line, "RealMemory") or 0),
        gres=read_gres(_field(line, "Gres")),
        partitions=_words(_field(line, "Partitions")),
        cpus_in_use=int(_field(line, "CPUAlloc") or 0),
        memory_in_use_mib=int(_field(line, "AllocMem") or 0),
        gres_in_use={"gpu": int(allocated["gres/gpu"])} if "gres/gpu" in allocated else {},
        version=_field(line, "Version"),
        address=_field(line, "NodeAddr"),
        port=_field(line, "Port"),
        effective_cpus=int(_field(line, "CPUEfctv") or _field(line, "CPUTot") or 0),
        sockets=int(_field(line, "Sockets") or 1),
        cpus_per_core=_cpus_per_core(
            *(_field(line, key) for key in ("CPUTot", "Sockets", "CoresPerSocket"))
        ),
    )


def _field(line: str, key: str) -> str:
    """Return a value without spaces; nothing for a key that is missing or `(null)`."""
    found = re.search(rf"(?:^|\s){key}=(\S*)", line)
    return found[1] if found and found[1] != "(null)" else ""


def _words(value: object) -> tuple[str, ...]:
    """Return a list of words; older versions print a plain string instead."""
    if isinstance(value, str):
        return tuple(value.replace("+", ",").split(",")) if value else ()
    return tuple(str(word) for word in value) if isinstance(value, list) else ()


def _split_outside_brackets(text: str) -> list[str]:
    entries, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            entries.append("")
        else:
            entries[-1] += character
    return entries
