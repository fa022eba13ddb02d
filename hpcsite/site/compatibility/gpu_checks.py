"""NVIDIA's stack: driver, Fabric Manager, CUDA, NCCL and DCGM. Pure."""

import re
from collections.abc import Iterator

from hpcsite.site.compatibility.models import TITLES, CudaFloor, CudaToolkit, Finding, Matrix, Stack
from hpcsite.site.compatibility.pins import numbers_of, version_of
from hpcsite.site.compatibility.versions import dotted

# NVIDIA's packages of NCCL say what they were built with: 2.21.5-1+cuda12.4.
_BUILT_WITH = re.compile(r"\+cuda(\d+(?:\.\d+)?)")
_NEEDS_DRIVER = ("fabric_manager", "cuda", "nccl", "dcgm")


def driver_is_pinned(stack: Stack, _matrix: Matrix) -> Iterator[Finding]:
    """Say what cannot be judged without the version of the driver."""
    names = tuple(name for name in _NEEDS_DRIVER if stack.pin(name) is not None)
    if names and stack.nvidia_driver is None:
        titles = ", ".join(TITLES[name] for name in names)
        yield Finding(
            "driver_is_pinned",
            f"unknown: whether the driver goes with {titles}; it is not pinned",
            "set nvidia_driver of site_software",
            "",
            "warning",
            ("nvidia_driver", *names),
        )


def fabric_manager_is_the_drivers(stack: Stack, matrix: Matrix) -> Iterator[Finding]:
    """Hold that Fabric Manager has the very version of the driver, where there are NVSwitches."""
    if not stack.nvswitch or stack.nvidia_driver is None:
        return
    source = "; ".join(note.source for note in matrix.fabric_manager)
    driver = version_of(stack, "nvidia_driver")
    manager = version_of(stack, "fabric_manager")
    if stack.fabric_manager is None:
        yield Finding(
            "fabric_manager_is_the_drivers",
            f"Fabric Manager is not pinned, and the driver is {stack.nvidia_driver}: an update of "
            "one of the two takes the NVSwitches down",
            f"set fabric_manager of site_software to {stack.nvidia_driver}",
            source,
            "warning",
            ("fabric_manager", "nvidia_driver"),
        )
    elif driver and manager and driver.upstream != manager.upstream:
        yield Finding(
            "fabric_manager_is_the_drivers",
            f"Fabric Manager {stack.fabric_manager} does not start with driver "
            f"{stack.nvidia_driver}: the two must have the same version",
            f"set fabric_manager of site_software to {driver.upstream}",
            source,
            pins=("fabric_manager", "nvidia_driver"),
        )


def cuda_is_served(stack: Stack, matrix: Matrix) -> Iterator[Finding]:
    """Hold that the driver runs programs of the CUDA toolkit, and say where it does so in part."""
    cuda, driver = numbers_of(stack, "cuda"), numbers_of(stack, "nvidia_driver")
    if cuda is None or driver is None:
        return
    floor = _floor(cuda[0], matrix)
    if floor is None:
        yield _unknown("cuda_is_served", f"which driver CUDA {stack.cuda} needs", "cuda")
    elif driver < dotted(floor.driver):
        yield Finding(
            "cuda_is_served",
            f"driver {stack.nvidia_driver} does not run CUDA {cuda[0]}: that needs {floor.driver}",
            f"use driver {floor.driver} or later, or an older CUDA",
            floor.source,
            pins=("cuda", "nvidia_driver"),
        )
    else:
        yield from _served_whole(stack, cuda, driver, matrix)


def nccl_is_served(stack: Stack, matrix: Matrix) -> Iterator[Finding]:
    """Hold that the driver runs the CUDA that NCCL was built with."""
    if stack.nccl is None:
        return
    said = _BUILT_WITH.search(stack.nccl)
    pinned = numbers_of(stack, "nccl_cuda")
    inside = dotted(said[1]) if said else None
    if pinned and inside and pinned[: len(inside)] != inside[: len(pinned)]:
        yield Finding(
            "nccl_is_served",
            f"NCCL {stack.nccl} says it was built with CUDA {said[1] if said else ''}, and "
            f"nccl_cuda says {stack.nccl_cuda}",
            "remove nccl_cuda",
            "",
            pins=("nccl_cuda", "nccl"),
        )
    built_with = inside or pinned
    driver = numbers_of(stack, "nvidia_driver")
    if built_with is None:
        yield Finding(
            "nccl_is_served",
            f"unknown: with which CUDA NCCL {stack.nccl} was built, and so which driver runs it",
            f"pin nccl by its package's whole version, such as {stack.nccl}-1+cuda12.8",
            "",
            "warning",
            ("nccl",),
        )
    elif driver is not None:
        yield from _nccl_floor(stack, built_with[0], driver, matrix)


def dcgm_knows_the_driver(stack: Stack, matrix: Matrix) -> Iterator[Finding]:
    """Hold that DCGM is new enough for the driver and for CUDA."""
    dcgm = numbers_of(stack, "dcgm")
    if dcgm is None:
        return
    driver, cuda = numbers_of(stack, "nvidia_driver"), numbers_of(stack, "cuda")
    for floor in matrix.dcgm_floors:
        beyond = []
        if driver and driver[0] >= floor.driver:
            beyond.append(f"driver {stack.nvidia_driver}")
        if cuda and cuda[0] >= floor.cuda:
            beyond.append(f"CUDA {stack.cuda}")
        if beyond and dcgm[0] < floor.dcgm:
            yield Finding(
                "dcgm_knows_the_driver",
                f"DCGM {stack.dcgm} fails with {' and '.join(beyond)}: that needs DCGM "
                f"{floor.dcgm}",
                f"use DCGM {floor.dcgm} or later",
                floor.source,
                pins=("dcgm", "nvidia_driver", "cuda"),
            )


def _served_whole(
    stack: Stack, cuda: tuple[int, ...], driver: tuple[int, ...], matrix: Matrix
) -> Iterator[Finding]:
    """Judge a toolkit by its own entry, or by the nearest older and newer ones of the matrix."""
    wanted = cuda[:2] if not any(cuda[2:]) else cuda
    toolkits = sorted(matrix.cuda_toolkits, key=lambda toolkit: dotted(toolkit.cuda))
    older = [toolkit for toolkit in toolkits if dotted(toolkit.cuda) <= wanted]
    newer = [toolkit for toolkit in toolkits if dotted(toolkit.cuda) >= wanted]
    if newer and driver >= dotted(newer[0].driver):
        return
    if older and driver < dotted(older[-1].driver):
        yield _in_part(stack, older[-1])
    else:
        yield _unknown(
            "cuda_is_served",
            f"whether driver {stack.nvidia_driver} serves CUDA {stack.cuda} whole, or only runs it "
            "by minor version compatibility",
            "cuda",
        )


def _in_part(stack: Stack, toolkit: CudaToolkit) -> Finding:
    return Finding(
        "cuda_is_served",
        f"driver {stack.nvidia_driver} runs CUDA {stack.cuda} by minor version compatibility only, "
        f"with a limited feature set: CUDA {toolkit.cuda} comes with {toolkit.driver}",
        f"use driver {toolkit.driver} or later, or an older CUDA",
        toolkit.source,
        "warning",
        ("cuda", "nvidia_driver"),
    )


def _nccl_floor(
    stack: Stack, major: int, driver: tuple[int, ...], matrix: Matrix
) -> Iterator[Finding]:
    floor = _floor(major, matrix)
    if floor is None:
        yield _unknown("nccl_is_served", f"which driver NCCL of CUDA {major} needs", "nccl")
    elif driver < dotted(floor.driver):
        yield Finding(
            "nccl_is_served",
            f"NCCL {stack.nccl} was built with CUDA {major}, which driver {stack.nvidia_driver} "
            f"does not run: that needs {floor.driver}",
            f"use an NCCL of an older CUDA, or driver {floor.driver} or later",
            floor.source,
            pins=("nccl", "nvidia_driver"),
        )


def _unknown(rule: str, what: str, name: str) -> Finding:
    return Finding(
        rule,
        f"unknown: {what}; it is not in the matrix",
        "look it up in NVIDIA's release notes, and try it on one node first",
        "",
        "warning",
        (name, "nvidia_driver"),
    )


def _floor(major: int, matrix: Matrix) -> CudaFloor | None:
    return next((floor for floor in matrix.cuda_floors if floor.cuda == major), None)
