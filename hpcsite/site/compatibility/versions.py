"""Versions of packages: reading them, and their order as dpkg and rpm have it. Pure.

A package's version is `epoch:upstream-revision`, of which only upstream is always there.
"""

import re
from dataclasses import dataclass
from typing import Literal

Style = Literal["deb", "rpm"]
Order = tuple[object, ...]

_VERSION = re.compile(
    r"(?:(?P<epoch>\d+):)?(?P<upstream>[0-9][A-Za-z0-9.+~^_]*(?:-[A-Za-z0-9.+~^_]+)*?)"
    r"(?:-(?P<revision>[A-Za-z0-9.+~^_]+))?",
    re.ASCII,
)
_DOTTED = re.compile(r"\d+(?:\.\d+)*", re.ASCII)
_PARTS = re.compile(r"(\D*)(\d*)", re.ASCII)
_RPM_PARTS = re.compile(r"\d+|[A-Za-z]+|~|\^", re.ASCII)
_REBUILD = re.compile(r"\+b\d+$", re.ASCII)
_UPDATE = re.compile(r"(?P<series>.*?\D)(?P<number>\d+)", re.ASCII)


@dataclass(frozen=True)
class PackageVersion:
    """A package's version: `24.11.5-4+deb13u1` has the revision 4+deb13u1."""

    upstream: str
    revision: str = ""
    epoch: int = 0

    def __str__(self) -> str:
        epoch = f"{self.epoch}:" if self.epoch else ""
        return f"{epoch}{self.upstream}{'-' if self.revision else ''}{self.revision}"


def read_package(text: str) -> PackageVersion | None:
    """Read a package's version; None for what is none, such as `580.*` or `latest`."""
    found = _VERSION.fullmatch(text.strip())
    if not found:
        return None
    return PackageVersion(found["upstream"], found["revision"] or "", int(found["epoch"] or 0))


def numbers(text: str) -> tuple[int, ...] | None:
    """Read a version of numbers and dots only: `580.65.06` → (580, 65, 6); None for any other."""
    return dotted(text) if _DOTTED.fullmatch(text) else None


def dotted(text: str) -> tuple[int, ...]:
    """Read a version that is known to be numbers and dots, as the matrix's are."""
    return tuple(map(int, text.split(".")))


def leading_numbers(text: str) -> tuple[int, ...] | None:
    """Read the numbers with which a version begins: `6.12.118+deb13` → (6, 12, 118)."""
    found = _DOTTED.match(text)
    return numbers(found[0]) if found else None


def order(version: PackageVersion, style: Style) -> Order:
    """Give what versions are sorted by: as `dpkg --compare-versions`, or as rpm's rpmvercmp."""
    if style == "rpm":
        return (version.epoch, _rpm_key(version.upstream), _rpm_key(version.revision))
    # Without a revision, dpkg takes 0 for it.
    return (version.epoch, _deb_key(version.upstream), _deb_key(version.revision or "0"))


def is_update_of(version: PackageVersion, first: PackageVersion) -> bool:
    """Say whether a version is `first` or a later update of it in the same stable release.

    4+deb13u2 is an update of 4+deb13u1; 5 is not: a package that went another way since may lack
    what the update brought. A rebuild (`+b1`) is what was rebuilt.
    """
    if (version.epoch, version.upstream) != (first.epoch, first.upstream):
        return False
    mine, theirs = (
        _UPDATE.fullmatch(_REBUILD.sub("", revision))
        for revision in (version.revision, first.revision)
    )
    if not mine or not theirs:
        return _REBUILD.sub("", version.revision) == _REBUILD.sub("", first.revision)
    return mine["series"] == theirs["series"] and int(mine["number"]) >= int(theirs["number"])


def _deb_key(text: str) -> Order:
    """Sort key of Debian Policy, section 5.6.12: ~ is before the end, letters before the rest."""
    key: list[int] = []
    for other, digits in _PARTS.findall(text):
        if other or digits:
            key += [_weight(letter) for letter in other]
            key += [0, int(digits or 0)]
    return (*key, 0)


def _weight(letter: str) -> int:
    if letter == "~":
        return -1
    return ord(letter) if letter.isalpha() else ord(letter) + 256


def _rpm_key(text: str) -> Order:
    """Sort key of rpmvercmp: ~ is before the end and ^ after it; numbers are after letters."""
    key: list[tuple[int, int, str]] = []
    for part in _RPM_PARTS.findall(text):
        if part in "~^":
            key.append((-1 if part == "~" else 1, 0, ""))
        elif part.isdigit():
            key.append((3, int(part), ""))
        else:
            key.append((2, 0, part))
    return (*key, (0, 0, ""))
