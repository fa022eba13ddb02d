"""A stack's pins as versions, and what is wrong with a pin as such. Pure."""

import re
from collections.abc import Iterator

from hpcsite.site.compatibility.models import PINS, TITLES, Finding, Matrix, Stack
from hpcsite.site.compatibility.versions import (
    PackageVersion,
    leading_numbers,
    numbers,
    read_package,
)

# Numbers, dots and nothing else before the package's revision, and at least so many numbers.
_FULL = {"slurm": 3, "nvidia_driver": 2, "fabric_manager": 2, "cuda": 2, "nccl_cuda": 1}
_CANDIDATE = re.compile(r"rc\d", re.IGNORECASE)
_EXAMPLES = {
    "kernel": "6.12.118+deb13-amd64",
    "slurm": "25.11.8",
    "nvidia_driver": "580.65.06",
    "fabric_manager": "580.65.06",
    "cuda": "13.0",
    "nccl_cuda": "13.0",
}


def version_of(stack: Stack, name: str) -> PackageVersion | None:
    """Read a pin; None where there is none, and for one that `pins_are_versions` refuses."""
    text = stack.pin(name)
    return read_package(text) if text is not None and not _problem(name, text) else None


def numbers_of(stack: Stack, name: str) -> tuple[int, ...] | None:
    """Read the numbers with which a pin's upstream version begins; None as for `version_of`."""
    version = version_of(stack, name)
    return leading_numbers(version.upstream) if version else None


def pins_are_versions(stack: Stack, _matrix: Matrix) -> Iterator[Finding]:
    """Hold that every pin is one whole version: a pattern takes what the day brings."""
    for name in PINS:
        text = stack.pin(name)
        problem = _problem(name, text) if text is not None else ""
        if problem:
            example = f", such as {_EXAMPLES[name]}" if name in _EXAMPLES else ""
            yield Finding(
                "pins_are_versions",
                f"{text!r} is no version of {TITLES[name]}: {problem}",
                f"write the whole version{example}, or null for the distribution's own",
                "",
                pins=(name,),
            )


def _problem(name: str, text: str) -> str:
    version = read_package(text)
    if version is None:
        return "it cannot be read"
    wanted = _FULL.get(name)
    if wanted is None:
        return ""
    found = numbers(version.upstream)
    if found is None:
        return "it is more than numbers and dots"
    if len(found) < wanted:
        return "it names a branch only"
    return "it is a release candidate" if _CANDIDATE.search(version.revision) else ""
