"""Slurm's security holes, and PMIx between Slurm and Open MPI. Pure."""

from collections.abc import Iterator

from hpcsite.site.compatibility.models import (
    Advisory,
    Finding,
    Matrix,
    Offered,
    OperatingSystem,
    Stack,
)
from hpcsite.site.compatibility.pins import numbers_of, version_of
from hpcsite.site.compatibility.versions import (
    PackageVersion,
    dotted,
    is_update_of,
    numbers,
    read_package,
)


def slurm_has_no_known_holes(stack: Stack, matrix: Matrix) -> Iterator[Finding]:
    """Refuse a Slurm below the fixed releases, unless its package is known to carry the fixes."""
    if stack.slurm is not None:
        version = version_of(stack, "slurm")
        if version:
            yield from _holes(version, stack, matrix)
        return
    if stack.os is None:
        return
    offered = _offered(stack.os, matrix)
    version = read_package(offered.package) if offered else None
    if version:
        yield from _holes(version, stack, matrix)
    else:
        yield Finding(
            "slurm_has_no_known_holes",
            f"unknown: which Slurm {_title(stack.os)} installs, and whether it has known holes",
            f"pin slurm of site_software to {_fixed(matrix)} or later",
            "",
            "warning",
            ("slurm",),
        )


def pmix_is_known_to_slurm(stack: Stack, matrix: Matrix) -> Iterator[Finding]:
    """Hold that Slurm has a plugin for the major version of PMIx."""
    pmix = numbers_of(stack, "pmix")
    if pmix is None:
        return
    major, slurm = pmix[0], numbers_of(stack, "slurm")
    entry = next((entry for entry in matrix.slurm_pmix if entry.pmix == major), None)
    if entry is None:
        known = ", ".join(str(entry.pmix) for entry in matrix.slurm_pmix)
        yield Finding(
            "pmix_is_known_to_slurm",
            f"unknown: whether Slurm has a plugin for PMIx {major}; it is not in the matrix",
            f"use a PMIx that Slurm is known to have a plugin for: {known}",
            "",
            "warning",
            ("pmix", "slurm"),
        )
    elif entry.slurm and slurm and slurm < dotted(entry.slurm):
        yield Finding(
            "pmix_is_known_to_slurm",
            f"Slurm {stack.slurm} has no plugin for PMIx {major}: that came with {entry.slurm}",
            f"use an older PMIx, or Slurm {entry.slurm} or later",
            entry.source,
            pins=("pmix", "slurm"),
        )
    yield from _other_plugin(stack, matrix, major)


def openmpi_has_its_pmix(stack: Stack, matrix: Matrix) -> Iterator[Finding]:
    """Hold that PMIx is new enough for Open MPI."""
    openmpi, pmix = numbers_of(stack, "openmpi"), numbers_of(stack, "pmix")
    if openmpi is None or pmix is None:
        return
    entry = next((entry for entry in matrix.openmpi_pmix if entry.openmpi == openmpi[0]), None)
    if entry is None:
        yield Finding(
            "openmpi_has_its_pmix",
            f"unknown: which PMIx Open MPI {openmpi[0]} needs; it is not in the matrix",
            "try an MPI program under srun before users do",
            "",
            "warning",
            ("openmpi", "pmix"),
        )
    elif pmix < dotted(entry.pmix):
        yield Finding(
            "openmpi_has_its_pmix",
            f"Open MPI {stack.openmpi} needs PMIx {entry.pmix} or later, and this is {stack.pmix}",
            f"use PMIx {entry.pmix} or later",
            entry.source,
            pins=("pmix", "openmpi"),
        )


def open_cves(
    version: PackageVersion, system: OperatingSystem | None, advisory: Advisory, matrix: Matrix
) -> tuple[str, ...]:
    """Name the holes of an advisory that a version of Slurm has."""
    mine = numbers(version.upstream) or ()
    fixed = [dotted(text) for text in advisory.fixed]
    release = mine[:2]
    same = [first for first in fixed if first[:2] == release]
    if (same and mine >= same[0]) or release > max(fixed)[:2]:
        return ()
    carried = {
        cve
        for backport in matrix.backports
        if system is None or _is(system, backport.distribution, backport.version)
        if (first := read_package(backport.package)) and is_update_of(version, first)
        for cve in backport.cves
    }
    return tuple(cve for cve in advisory.cves if cve not in carried)


def _holes(version: PackageVersion, stack: Stack, matrix: Matrix) -> Iterator[Finding]:
    for advisory in matrix.advisories:
        holes = open_cves(version, stack.os, advisory, matrix)
        if not holes:
            continue
        whose = f"Slurm {version}"
        if stack.slurm is None and stack.os:
            whose = f"the Slurm of {_title(stack.os)}, {version} as far as is known,"
        yield Finding(
            "slurm_has_no_known_holes",
            f"{whose} has known security holes: {', '.join(holes)}",
            f"use {_fixed(matrix)} or later" + _carriers(stack.os, matrix),
            advisory.source,
            "error" if stack.slurm is not None else "warning",
            ("slurm",),
        )


def _other_plugin(stack: Stack, matrix: Matrix, major: int) -> Iterator[Finding]:
    """Find a distribution's Slurm whose only plugin is for another PMIx."""
    offered = _offered(stack.os, matrix) if stack.os else None
    package = read_package(offered.package) if offered else None
    if offered is None or package is None or offered.pmix in (None, major):
        return
    slurm = version_of(stack, "slurm")
    if stack.slurm is not None and (slurm is None or not is_update_of(slurm, package)):
        return
    yield Finding(
        "pmix_is_known_to_slurm",
        f"Slurm's package {package} has its plugin for PMIx {offered.pmix}, not for {stack.pmix}",
        f"use PMIx {offered.pmix}, or a Slurm that is built with PMIx {major}",
        offered.source,
        pins=("pmix", "slurm"),
    )


def _offered(system: OperatingSystem, matrix: Matrix) -> Offered | None:
    for offered in matrix.offered:
        if _is(system, offered.distribution, offered.version):
            return offered
    return None


def _is(system: OperatingSystem, distribution: str, version: str) -> bool:
    same = system.version == version or system.version.startswith(f"{version}.")
    return same and system.distribution.lower() == distribution


def _fixed(matrix: Matrix) -> str:
    """Name the oldest versions without any hole: one of each release, of the newest advisory."""
    newest: dict[tuple[int, ...], str] = {}
    for advisory in matrix.advisories:
        for text in advisory.fixed:
            release = dotted(text)[:2]
            if release not in newest or dotted(newest[release]) < dotted(text):
                newest[release] = text
    *others, last = (newest[release] for release in sorted(newest))
    return f"{', '.join(others)} or {last}" if others else last


def _carriers(system: OperatingSystem | None, matrix: Matrix) -> str:
    packages = [
        backport.package
        for backport in matrix.backports
        if system and _is(system, backport.distribution, backport.version)
    ]
    if not packages or system is None:
        return ""
    return f", or pin the package of {_title(system)} by its whole version: {', '.join(packages)}"


def _title(system: OperatingSystem) -> str:
    return f"{system.distribution.capitalize()} {system.version}"
