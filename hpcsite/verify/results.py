"""What a verification run found: the models that are stored, printed and rendered.

The JSON of `Run` is an interface for other programs: `schema_version` counts up whenever a field
changes its meaning or goes; a new optional field does not count. `tests/unit/verify` holds the
exported schema against a golden file.
"""

import math
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from hpcsite.errors import ExitCode

# The reason of a check that was to run, or ran, when the run was interrupted.
INTERRUPTED = "interrupted"
SCHEMA_VERSION: Literal[1] = 1


class Status(StrEnum):
    """Verdict of a check. What could not be measured is an ERROR, never anything else."""

    PASS = "PASS"  # noqa: S105 - a verdict
    FAIL = "FAIL"
    SKIP = "SKIP"
    ERROR = "ERROR"


class Direction(StrEnum):
    """Which way a measurement is better."""

    HIGHER = "higher"
    LOWER = "lower"


class Frozen(BaseModel):
    """Immutable, and closed to fields that this version does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Reference(Frozen):
    """What a measurement is held against."""

    value: float = Field(gt=0, allow_inf_nan=False)
    tolerance: float = Field(0, ge=0, lt=1, description="relative: 0.05 allows 5 % worse")
    unit: str
    source: str = Field(min_length=1, description="where the figure comes from")
    applies: dict[str, str | int | float] = Field(
        {}, description="where it holds, e.g. message_bytes: 1048576"
    )


class Measurement(Frozen):
    """One number with its unit, and the reference that applies to it, if any."""

    name: str
    value: float = Field(allow_inf_nan=False)
    unit: str
    direction: Direction
    at: dict[str, str | int | float] = Field(
        {}, description="what it was measured at, e.g. message_bytes, nodes"
    )
    reference: Reference | None = None
    raw: str = Field("", description="the file that it was read from, relative to the run's folder")

    @model_validator(mode="after")
    def _same_unit(self) -> Self:
        if self.reference and self.reference.unit != self.unit:
            msg = f"{self.name} is in {self.unit}, its reference in {self.reference.unit}"
            raise ValueError(msg)
        return self

    @property
    def meets(self) -> bool | None:
        """Whether it is as good as its reference allows; None where no reference applies."""
        if self.reference is None:
            return None
        allowed, slack = self.reference.value, self.reference.tolerance
        if self.direction is Direction.HIGHER:
            return self.value >= allowed * (1 - slack) or math.isclose(self.value, allowed)
        return self.value <= allowed * (1 + slack) or math.isclose(self.value, allowed)


class Variant(Frozen):
    """One value of a property and the nodes that have it."""

    value: str
    nodes: str = Field(description="node set, folded as Slurm folds it")


class Property(Frozen):
    """Something that should be the same on every node, and what it is where."""

    name: str
    variants: tuple[Variant, ...] = Field(description="most common first")

    @property
    def uniform(self) -> bool:
        """Whether every node has the same value."""
        return len(self.variants) == 1


class CulpritKind(StrEnum):
    """What kind of thing is to blame."""

    NODE = "node"
    LINK = "link"
    RAIL = "rail"
    LEAF = "leaf"


class Certainty(StrEnum):
    """How sure a culprit is: what was seen allows no other, speaks for it, or only points there."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


class Culprit(Frozen):
    """Whom the measurements blame, how surely, and why."""

    kind: CulpritKind
    name: str = Field(
        min_length=1,
        description="a node; the two nodes of a link with ` - ` between them; a rail or a leaf",
    )
    nodes: str = Field(description="node set that it concerns, folded as Slurm folds it")
    certainty: Certainty
    because: str = Field(min_length=1, description="what was seen, with figures")


class Result(Frozen):
    """What one check found."""

    suite: str
    check: str
    about: str = Field("", description="what the check proves, in one sentence")
    nodes: str = Field("", description="node set that it covers; empty: no node in particular")
    status: Status
    reason: str = Field("", description="why, for everything but a plain PASS")
    measurements: tuple[Measurement, ...] = ()
    properties: tuple[Property, ...] = ()
    culprits: tuple[Culprit, ...] = Field((), description="surest first")
    remedy: str = Field("", description="what to do about a FAIL, in a sentence")
    commands: tuple[str, ...] = Field((), description="what was run, as a person could paste it")
    raw: tuple[str, ...] = Field((), description="raw output, relative to the run's folder")
    seconds: float = Field(0, ge=0)

    @model_validator(mode="after")
    def _reason_given(self) -> Self:
        if self.status is not Status.PASS and not self.reason:
            msg = f"{self.suite}/{self.check} is {self.status} without a reason"
            raise ValueError(msg)
        return self


class Summary(Frozen):
    """Counts and the verdict over all results."""

    passed: int = Field(ge=0)
    failed: int = Field(ge=0)
    skipped: int = Field(ge=0)
    errors: int = Field(ge=0)
    verdict: Status = Field(description="PASS, FAIL or ERROR; a run that executed nothing is ERROR")

    @classmethod
    def of(cls, results: Iterable[Result]) -> Self:
        """Count results; any FAIL fails the run, else any ERROR, else nothing executed."""
        count = Counter(result.status for result in results)
        if count[Status.FAIL]:
            verdict = Status.FAIL
        elif count[Status.ERROR] or not count[Status.PASS]:
            verdict = Status.ERROR
        else:
            verdict = Status.PASS
        return cls(
            passed=count[Status.PASS],
            failed=count[Status.FAIL],
            skipped=count[Status.SKIP],
            errors=count[Status.ERROR],
            verdict=verdict,
        )


class Run(Frozen):
    """One verification run of one site."""

    schema_version: Literal[1] = SCHEMA_VERSION
    hpcsite_version: str
    run_id: str
    site: str
    cluster: str
    user: str = Field(description="the ordinary user who ran it")
    submit_host: str = Field(description="the node that jobs were submitted from")
    suites: tuple[str, ...]
    started: datetime = Field(description="UTC")
    finished: datetime = Field(description="UTC")
    interrupted: bool = False
    results: tuple[Result, ...]
    summary: Summary

    @property
    def seconds(self) -> float:
        """Wall seconds from start to end."""
        return (self.finished - self.started).total_seconds()

    @property
    def exit_code(self) -> ExitCode:
        """What a command that ends with this run ends with."""
        if self.interrupted:
            return ExitCode.INTERRUPTED
        return _EXIT_CODES[self.summary.verdict]


_EXIT_CODES = {
    Status.PASS: ExitCode.OK,
    Status.FAIL: ExitCode.FAILED,
    Status.ERROR: ExitCode.COULD_NOT_RUN,
}
