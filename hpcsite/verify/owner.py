"""Whose a job is: written into the comment of every job of a run, for other runs to read.

A run that was killed leaves jobs, and two administrators may verify one cluster from two
computers. The comment tells them apart: `origin` names the folder that holds the run's lock, so
whoever holds that lock knows that all older jobs of its origin are left over. Of another origin,
a job is left over once it is older than any job of its run can get.
"""

import re
from dataclasses import dataclass

# What a job takes beyond its patience and its time limit: to be scheduled, ended and cancelled.
_GRACE_S = 120
_COMMENT = re.compile(r"hpcsite run=(\S+) origin=(\S+) lasts=(\d+) by=(.+)")


@dataclass(frozen=True)
class Owner:
    """The run that submitted a job; `lasts_s` is how old such a job of a live run can be."""

    run: str
    origin: str
    by: str
    lasts_s: int

    @property
    def comment(self) -> str:
        """The job's comment."""
        return f"hpcsite run={self.run} origin={self.origin} lasts={self.lasts_s} by={self.by}"


def lasting(wait_s: float, minutes: int) -> int:
    """Seconds from submission in which a job ends that waits and runs at most so long."""
    return int(wait_s) + minutes * 60 + _GRACE_S


def read_owner(comment: str) -> Owner | None:
    """Read a job's comment; None for a job that no run of hpcsite submitted."""
    found = _COMMENT.fullmatch(comment)
    return Owner(found[1], found[2], found[4], int(found[3])) if found else None
