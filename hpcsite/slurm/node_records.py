"""Reading nodes and partitions from Slurm's JSON.

Fields move and go between Slurm versions, so what is missing is empty here, never an error; only
a text that is no JSON of Slurm's raises `SlurmOutputError`. Memory is in MiB, as in Slurm.
"""

import json
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
    gres_in_use: dict[str, int]
    version: str

    @property
    def usable(self) -> bool:
        """Whether it takes jobs."""
        return bool(self.states) and UNUSABLE.isdisjoint(self.states)

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
        raise SlurmOutputError(f"this is no JSON of Slurm's: {text[:80]!r}")
    return value


def read_nodes(text: str) -> dict[str, SlurmNode]:
    """Read `scontrol show nodes --json`, by name."""
    nodes = (_node(entry) for entry in read_json(text).get("nodes") or ())
    return {node.name: node for node in nodes}


def read_up_partitions(text: str) -> tuple[str, ...]:
    """Names of the partitions that take jobs, from `scontrol show partitions --json`."""
    return tuple(
        str(entry.get("name", ""))
        for entry in read_json(text).get("partitions") or ()
        if "UP" in _words((entry.get("partition") or {}).get("state"))
    )


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
        gres_in_use=read_gres(str(entry.get("gres_used") or "")),
        version=str(entry.get("version") or ""),
    )


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
