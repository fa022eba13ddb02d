"""What all renderers say alike."""

from dataclasses import dataclass
from datetime import datetime

from hpcsite.verify.results import INTERRUPTED, Measurement, Result, Run, Status

# What a person must act on stands first.
ORDER = {Status.FAIL: 0, Status.ERROR: 1, Status.SKIP: 2, Status.PASS: 3}
_BYTES_PER_UNIT = 1024


def headline(run: Run) -> str:
    """Return the verdict in a sentence."""
    if run.interrupted:
        return "The run was interrupted; nothing is proved."
    count = run.summary
    total = len(run.results)
    if count.failed:
        also = f", {count.errors} could not be run" if count.errors else ""
        return f"{count.failed} of {total} checks failed{also}."
    if count.errors:
        return f"{count.errors} of {total} checks could not be run; the others passed."
    if not count.passed:
        return "No check was executed; nothing is proved."
    skipped = f", {count.skipped} skipped" if count.skipped else ""
    return f"All is well: {count.passed} checks passed{skipped}."


def counts(run: Run) -> list[tuple[Status, int]]:
    """How many checks ended how."""
    count = run.summary
    return [
        (Status.PASS, count.passed),
        (Status.FAIL, count.failed),
        (Status.ERROR, count.errors),
        (Status.SKIP, count.skipped),
    ]


@dataclass(frozen=True)
class Trouble:
    """Something that a person must act on: one cause, and every check that it spoiled."""

    status: Status
    reason: str
    results: tuple[Result, ...]

    @property
    def checks(self) -> str:
        """Names of the checks."""
        return ", ".join(f"{result.suite}/{result.check}" for result in self.results)

    @property
    def first(self) -> str:
        """Name of the first check."""
        return self.checks.partition(", ")[0]


def troubles(run: Run) -> list[Trouble]:
    """Return what a person must act on, worst first; not what an interrupt ended."""
    causes: dict[tuple[Status, str], list[Result]] = {}
    for result in run.results:
        if result.status in (Status.FAIL, Status.ERROR) and result.reason != INTERRUPTED:
            causes.setdefault((result.status, result.reason), []).append(result)
    found = [Trouble(*cause, tuple(results)) for cause, results in causes.items()]
    return sorted(found, key=lambda trouble: ORDER[trouble.status])


def number(value: float) -> str:
    """Return a figure with the digits that it deserves: 4.57, 0.0012, 12873."""
    magnitude = abs(value)
    if magnitude >= 1000:
        return f"{value:.0f}"
    return f"{value:.3g}" if magnitude else "0"


def size(count: int) -> str:
    """Return a message size: 1 KiB, 4 MiB."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < _BYTES_PER_UNIT or unit == "GiB":
            return f"{value:g} {unit}"
        value /= _BYTES_PER_UNIT
    raise AssertionError(count)


def conditions(measured: Measurement) -> str:
    """Say what a measurement was taken at."""
    said = []
    for key, value in measured.at.items():
        if key == "message_bytes":
            said.append(size(int(value)))
        elif key == "error_s":
            said.append(f"±{number(float(value))} s")
        elif key == "nodes":
            said.append(str(value).replace(",", " to "))
        else:
            said.append(f"{key} {value}")
    return ", ".join(said)


def reference(measured: Measurement) -> str:
    """Say what a measurement is held against."""
    held = measured.reference
    if held is None:
        return "no reference applies"
    sign = "≥" if measured.direction == "higher" else "≤"
    slack = f" less {held.tolerance:.0%}" if held.tolerance else ""
    return f"{sign} {number(held.value)} {held.unit}{slack}"


def moment(when: datetime) -> str:
    """Return a time in UTC, to the second."""
    return f"{when:%Y-%m-%d %H:%M:%S} UTC"
