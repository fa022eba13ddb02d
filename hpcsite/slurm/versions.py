"""Versions of Slurm: reading them, their order, and the release of a table that stands for one.

Slurm's releases are named by year and month; `24.11.5-4+deb13u1` is the fifth update of release
24.11, as a distribution packages it. How packages of one update compare is the business of the
distribution (hpcsite/site/compatibility/versions.py).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

# A version may stand behind a name: `slurm-wlm 24.11.5` of a program, `slurm-24.11.5` of a file.
_VERSION = re.compile(
    r"(?:slurm(?:-wlm)?[ -])?(?P<year>\d{2})\.(?P<month>\d{2})(?:\.(?P<update>\d+))?"
    r"(?:-0)?(?:~?rc(?P<candidate>\d+))?(?P<package>[-+~].*)?",
    re.IGNORECASE | re.ASCII,
)
# Above every release candidate: 26.05.0rc1 comes before 26.05.0.
_FINAL = 1_000_000


@dataclass(frozen=True, order=True)
class SlurmVersion:
    """A version of Slurm; ordered by release, update and release candidate."""

    year: int
    month: int
    update: int = 0
    candidate: int = _FINAL
    package: str = field(default="", compare=False)
    """What a distribution appends: `-4+deb13u1`."""

    @property
    def release(self) -> str:
        """The release, as Slurm writes it: `24.11`."""
        return f"{self.year}.{self.month:02}"

    def __str__(self) -> str:
        last = "" if self.candidate == _FINAL else f"rc{self.candidate}"
        return f"{self.release}.{self.update}{last}{self.package}"


@dataclass(frozen=True)
class TableRelease:
    """The release of a table by which a version is judged."""

    release: str
    exact: bool
    """Whether the table knows the version's own release."""
    note: str = ""
    """What is to be said where it does not."""


def read_version(text: str) -> SlurmVersion | None:
    """Read a version of Slurm; None for what is none, a release without an update is its first."""
    found = _VERSION.fullmatch(text.strip())
    if not found:
        return None
    return SlurmVersion(
        int(found["year"]),
        int(found["month"]),
        int(found["update"] or 0),
        _FINAL if found["candidate"] is None else int(found["candidate"]),
        found["package"] or "",
    )


def release_of(text: str) -> str | None:
    """Find the release of a version: `24.11.5-4+deb13u1` → `24.11`; None for no version."""
    version = read_version(text)
    return version.release if version else None


def release_in(text: str, releases: Sequence[str]) -> TableRelease:
    """Find the release of a table that stands for a version.

    A release that the table does not know is judged by the nearest lower one; one below all by the
    lowest; a text that is no version by the highest.
    """
    known = sorted(releases)
    wanted = release_of(text)
    if wanted in known:
        return TableRelease(wanted, exact=True)
    if wanted is None:
        return TableRelease(
            known[-1], exact=False, note=f"{text!r} is no version of Slurm; judged as {known[-1]}"
        )
    lower = [release for release in known if release < wanted]
    chosen = lower[-1] if lower else known[0]
    return TableRelease(
        chosen,
        exact=False,
        note=f"which keys Slurm {wanted} knows is unknown here; judged as {chosen}",
    )
