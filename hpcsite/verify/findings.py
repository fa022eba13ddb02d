"""What a check says at its end, and how it says that it could not tell."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from hpcsite.verify.results import Culprit, Measurement, Property, Status


@dataclass(frozen=True)
class Finding:
    """A check's verdict, before it becomes a stored `Result`."""

    status: Status
    reason: str = ""
    nodes: tuple[str, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    properties: tuple[Property, ...] = ()
    culprits: tuple[Culprit, ...] = ()
    remedy: str = ""


class NotMeasuredError(Exception):
    """The check could not tell: an ERROR, with the reason for a person."""


class BusyError(NotMeasuredError):
    """The check did not get its nodes in time: others use them."""

    def __init__(self, what: str) -> None:
        super().__init__(f"could not run: nodes busy: {what}")


@dataclass
class Tally:
    """Collects what is wrong (then it is a FAIL) and what is unknown (else an ERROR)."""

    wrong: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    def finding(
        self,
        nodes: Iterable[str] = (),
        *,
        reason: str = "",
        measurements: Iterable[Measurement] = (),
        properties: Iterable[Property] = (),
        culprits: Iterable[Culprit] = (),
        remedy: str = "",
    ) -> Finding:
        """Return the verdict; `reason` is said where all is well, `remedy` where something is not.

        `culprits` are named only where something is wrong.
        """
        status = Status.FAIL if self.wrong else Status.ERROR if self.unknown else Status.PASS
        # What is the same for many nodes names them all, and is said once.
        said = "; ".join(dict.fromkeys(self.wrong + self.unknown)) or reason
        return Finding(
            status,
            said,
            tuple(nodes),
            tuple(measurements),
            tuple(properties),
            tuple(culprits) if self.wrong else (),
            remedy if self.wrong else "",
        )
