"""What Slurm's fields have in common: times, and numbers that it can hold."""

import re
from collections.abc import Iterator

from hpcsite.errors import Problem
from hpcsite.site.draft import Draft
from hpcsite.site.sources import KeyPath
from hpcsite.slurm.values import value_problem

# slurm.conf(5): minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes
# and days-hours:minutes:seconds.
_TIME = re.compile(
    r"(?:(?P<days>\d+)-(?P<d_hours>\d+)(?::(?P<d_minutes>\d+)(?::(?P<d_seconds>\d+))?)?"
    r"|(?:(?P<hours>\d+):(?P<h_minutes>\d+):(?P<h_seconds>\d+))"
    r"|(?P<minutes>\d+)(?::(?P<seconds>\d+))?)"
)
_TOO_LONG = 100
_UNLIMITED = ("UNLIMITED", "INFINITE")


def seconds_of(text: str) -> float | None:
    """Seconds of a time as Slurm writes it, infinite for UNLIMITED; None if it is no time."""
    if text.upper() in _UNLIMITED:
        return float("inf")
    found = _TIME.fullmatch(text) if len(text) < _TOO_LONG else None
    if not found:
        return None
    part = {name: int(value or 0) for name, value in found.groupdict().items()}
    hours = part["days"] * 24 + part["d_hours"] + part["hours"]
    minutes = hours * 60 + part["d_minutes"] + part["h_minutes"] + part["minutes"]
    return minutes * 60 + part["d_seconds"] + part["h_seconds"] + part["seconds"]


def time_problem(draft: Draft, text: str, path: KeyPath) -> Problem:
    """Say that a value is no time as Slurm writes it."""
    return draft.problem(
        f"{text} is no time limit",
        path,
        'as Slurm writes it: minutes ("30"), hours:minutes:seconds ("12:00:00"), '
        "days-hours:minutes:seconds (1-00:00:00), or UNLIMITED",
        code="HPC1209",
    )


def limits_are_times(draft: Draft) -> Iterator[Problem]:
    """Check that the longest time of QOS, accounts and associations is one."""
    for key in ("qos", "accounts", "associations"):
        for number, entry in draft.entries(key, "max_wall"):
            if entry.max_wall is not None and seconds_of(entry.max_wall) is None:
                yield time_problem(draft, entry.max_wall, (f"site_{key}", number, "max_wall"))


def weights_can_be_held(draft: Draft) -> Iterator[Problem]:
    """Check that Slurm has bits enough for the weight of a node."""
    for name, group in draft.keys.node_groups.items():
        if why := value_problem("slurm.conf", "NodeName", "Weight", str(group.weight)):
            yield draft.problem(
                f"{name}: {why}",
                ("site_node_groups", name, "weight"),
                "weights only order the nodes: small numbers do",
                code="HPC1222",
            )


RULES = (limits_are_times, weights_can_be_held)
