"""Stacks held against the matrix: each check, with what it lets pass and what it finds."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcsite.site.compatibility.checks import CHECKS, check_stack
from hpcsite.site.compatibility.load import load_matrix
from hpcsite.site.compatibility.models import (
    PINS,
    Finding,
    Kernels,
    Matrix,
    OperatingSystem,
    Stack,
)
from hpcsite.site.compatibility.slurm_checks import open_cves
from hpcsite.site.compatibility.versions import read_package

DEBIAN_12 = OperatingSystem("debian", "12")
DEBIAN_13 = OperatingSystem("debian", "13")
ROCKY = OperatingSystem("rocky", "9.5")
FIXED = "24.11.5-4+deb13u1"


def _of(rule: str, stack: Stack, matrix: Matrix | None = None) -> list[Finding]:
    return [finding for finding in check_stack(stack, matrix) if finding.rule == rule]


def _one(rule: str, stack: Stack, severity: str = "error") -> Finding:
    (finding,) = _of(rule, stack)
    assert finding.severity == severity
    assert finding.hint
    assert finding.pins
    assert finding.source or finding.message.startswith("unknown: ") or "says" in finding.message
    return finding


def _pinned(stack: Stack, name: str, version: str) -> Stack:
    pins: dict[str, Any] = {name: version}
    return replace(stack, **pins)


def test_good_stack_has_no_findings() -> None:
    stack = Stack(
        os=DEBIAN_13,
        gpu_models=("H100",),
        nvswitch=True,
        kernel="6.12.118+deb13-amd64",
        slurm=FIXED,
        nvidia_driver="580.65.06-1",
        fabric_manager="580.65.06-0ubuntu1",
        cuda="13.0",
        nccl="2.27.7-1+cuda13.0",
        dcgm="1:4.2.3-1",
        pmix="5.0.7-1",
        openmpi="5.0.7-1",
        ucx="1.18.1+ds-2",
    )
    assert check_stack(stack) == []
    assert check_stack(Stack()) == []


SLURM = "slurm_has_no_known_holes"


@pytest.mark.parametrize(
    "version",
    ["25.05.9", "25.05.10", "25.11.8-1.el9", "26.05.4", "26.05.5-1ubuntu2", "26.11.0", FIXED],
)
def test_slurm_with_the_fixes(version: str) -> None:
    assert _of(SLURM, Stack(slurm=version)) == []


@pytest.mark.parametrize(
    "version",
    ["25.05.8", "25.11.7", "26.05.3", "24.11.5", "24.11.5-4", "24.11.5-5", "24.11.7", "23.11.11"],
)
def test_slurm_below_the_fixes(version: str) -> None:
    finding = _one(SLURM, Stack(slurm=version, os=DEBIAN_13))
    assert finding.message.startswith(f"Slurm {version} has known security holes: ")
    assert "CVE-2026-65107" in finding.message
    assert "25.05.9, 25.11.8 or 26.05.4" in finding.hint
    assert FIXED in finding.hint
    assert "aws-parallelcluster#7601" in finding.source


def test_backport_counts_on_its_own_distribution_only() -> None:
    assert _of(SLURM, Stack(slurm=FIXED, os=DEBIAN_13)) == []
    later = FIXED.replace("u1", "u2")
    assert _of(SLURM, Stack(slurm=later, os=DEBIAN_13)) == []
    assert _one(SLURM, Stack(slurm=FIXED, os=DEBIAN_12))
    assert FIXED not in _one(SLURM, Stack(slurm="24.11.5", os=ROCKY)).hint


def test_backport_of_some_fixes_leaves_the_others() -> None:
    matrix = load_matrix()
    cves = matrix.advisories[0].cves
    partly = matrix.backports[0].model_copy(update={"cves": cves[:3]})
    version = read_package(FIXED)
    assert version
    mine = matrix.model_copy(update={"backports": (partly,)})
    assert open_cves(version, DEBIAN_13, matrix.advisories[0], mine) == cves[3:]


def test_slurm_of_the_distribution() -> None:
    assert _of(SLURM, Stack(os=DEBIAN_13)) == []
    known = _one(SLURM, Stack(os=DEBIAN_12), "warning")
    assert known.message.startswith("the Slurm of Debian 12, 22.05.8-4+deb12u3")
    unknown = _one(SLURM, Stack(os=ROCKY), "warning")
    assert "Rocky 9.5" in unknown.message


FABRIC = "fabric_manager_is_the_drivers"


def test_fabric_manager() -> None:
    good = Stack(nvswitch=True, nvidia_driver="580.65.06", fabric_manager="580.65.06-1")
    assert _of(FABRIC, good) == []
    wrong = _one(FABRIC, replace(good, fabric_manager="580.82.07"))
    assert "580.82.07" in wrong.message
    assert wrong.hint.endswith("to 580.65.06")
    assert "aws-parallelcluster#3034" in wrong.source
    assert _one(FABRIC, replace(good, fabric_manager=None), "warning")
    assert _of(FABRIC, replace(good, fabric_manager="580.82.07", nvswitch=False)) == []
    assert _of("driver_is_pinned", replace(good, nvidia_driver=None))


DCGM = "dcgm_knows_the_driver"


@pytest.mark.parametrize("pins", [{"nvidia_driver": "580.65.06"}, {"cuda": "13.0"}])
def test_dcgm(pins: dict[str, str]) -> None:
    assert _of(DCGM, Stack(dcgm="4.2.3", **pins)) == []  # type: ignore[arg-type]
    finding = _one(DCGM, Stack(dcgm="1:3.3.9", **pins))  # type: ignore[arg-type]
    assert "DCGM 4" in finding.message
    assert "PR#5821" in finding.source


def test_dcgm_3_with_an_older_driver() -> None:
    assert _of(DCGM, Stack(dcgm="3.3.9", nvidia_driver="570.133.20", cuda="12.8")) == []


CUDA = "cuda_is_served"


@pytest.mark.parametrize(
    ("cuda", "driver"),
    [
        ("13.0", "580.65.06"),
        ("12.8", "570.26"),
        ("12.8.0", "570.26"),
        ("12.6", "570.26"),
        ("12.8", "580.65.06"),
        ("12.0", "525.60.13"),
        ("11.8", "520.61.05"),
        ("11.4", "535.183.06"),
    ],
)
def test_cuda_that_the_driver_serves(cuda: str, driver: str) -> None:
    assert _of(CUDA, Stack(cuda=cuda, nvidia_driver=driver)) == []


@pytest.mark.parametrize(
    ("cuda", "driver", "floor"),
    [
        ("13.0", "575.57.08", "580"),
        ("13.4", "570.26", "580"),
        ("12.0", "525.60.11", "525.60.13"),
        ("12.8", "520.61.05", "525.60.13"),
        ("11.8", "450.51.06", "450.80.02"),
    ],
)
def test_cuda_that_the_driver_does_not_run(cuda: str, driver: str, floor: str) -> None:
    finding = _one(CUDA, Stack(cuda=cuda, nvidia_driver=driver))
    assert finding.message.endswith(f"needs {floor}")


@pytest.mark.parametrize(
    ("cuda", "driver", "whole"),
    [
        ("12.8", "550.54.14", "CUDA 12.8 comes with 570.26"),
        ("12.9", "550.54.14", "CUDA 12.8 comes with 570.26"),
        ("12.4", "535.183.06", "CUDA 12.4 comes with 550.54.14"),
    ],
)
def test_cuda_that_the_driver_serves_in_part(cuda: str, driver: str, whole: str) -> None:
    finding = _one(CUDA, Stack(cuda=cuda, nvidia_driver=driver), "warning")
    assert "limited feature set" in finding.message
    assert finding.message.endswith(whole)


@pytest.mark.parametrize(
    ("cuda", "driver"), [("12.6", "560.28.03"), ("12.4.1", "550.54.14"), ("13.1", "580.65.06")]
)
def test_cuda_between_two_entries_is_unknown(cuda: str, driver: str) -> None:
    finding = _one(CUDA, Stack(cuda=cuda, nvidia_driver=driver), "warning")
    assert finding.message.startswith("unknown: whether driver")


@pytest.mark.parametrize("cuda", ["14.0", "10.2"])
def test_cuda_of_an_unknown_major_version(cuda: str) -> None:
    finding = _one(CUDA, Stack(cuda=cuda, nvidia_driver="580.65.06"), "warning")
    assert finding.message.startswith("unknown: which driver")


NCCL = "nccl_is_served"


def test_nccl() -> None:
    driver = "570.133.20"
    assert _of(NCCL, Stack(nccl="2.26.2-1+cuda12.8", nvidia_driver=driver)) == []
    assert _of(NCCL, Stack(nccl="2.26.2", nccl_cuda="12", nvidia_driver=driver)) == []
    assert _of(NCCL, Stack(nccl="2.26.2", nccl_cuda="12", nvidia_driver="525.60.13")) == []
    for stack in (
        Stack(nccl="2.27.7-1+cuda13.0", nvidia_driver=driver),
        Stack(nccl="2.27.7", nccl_cuda="13.0", nvidia_driver=driver),
    ):
        assert "CUDA 13, which driver 570.133.20 does not run" in _one(NCCL, stack).message
    assert _one(NCCL, Stack(nccl="2.27.7", nvidia_driver=driver), "warning")
    assert _one(NCCL, Stack(nccl="2.27.7-1+cuda14.0", nvidia_driver=driver), "warning")


def test_nccl_that_says_two_things() -> None:
    stack = Stack(nccl="2.26.2-1+cuda12.8", nccl_cuda="13.0", nvidia_driver="580.65.06")
    assert _one(NCCL, stack).pins == ("nccl_cuda", "nccl")


@pytest.mark.parametrize("name", ["cuda", "nccl", "dcgm", "fabric_manager"])
def test_driver_is_not_pinned(name: str) -> None:
    version = {"cuda": "13.0", "nccl": "2.27.7-1+cuda13.0"}.get(name, "580.65.06")
    stack = _pinned(Stack(), name, version)
    finding = _one("driver_is_pinned", stack, "warning")
    assert finding.pins == ("nvidia_driver", name)
    assert _of("driver_is_pinned", replace(stack, nvidia_driver="580.65.06")) == []


KERNEL = "kernel_is_pinned"
MODULES = "modules_go_with_the_kernel"


@pytest.mark.parametrize("name", ["lustre", "beegfs", "doca_ofed", "nvidia_driver"])
def test_kernel_is_not_pinned(name: str) -> None:
    stack = _pinned(Stack(), name, "2.15.5")
    assert _one(KERNEL, stack, "warning").pins == ("kernel", name)
    assert _of(KERNEL, replace(stack, kernel="5.14.0-427.13.1.el9_4.x86_64")) == []


def test_kernel_that_is_not_pinned_leaves_all_modules_behind() -> None:
    one = _one(KERNEL, Stack(lustre="2.15.5"), "warning")
    assert "Lustre has a module" in one.message
    two = _one(KERNEL, Stack(lustre="2.15.5", beegfs="8.1.0"), "warning")
    assert "Lustre, BeeGFS have modules" in two.message
    assert two.pins == ("kernel", "lustre", "beegfs")


@pytest.mark.parametrize("name", ["lustre", "beegfs", "doca_ofed"])
def test_module_and_kernel_that_nobody_knows(name: str) -> None:
    stack = _pinned(Stack(kernel="6.12.118+deb13-amd64"), name, "2.15.5")
    finding = _one(MODULES, stack, "warning")
    assert finding.message.startswith("unknown: ")
    assert "not in the matrix" in finding.message


@pytest.mark.parametrize(
    ("lustre", "kernel", "found"),
    [
        ("2.15.5", "5.14.0-427.13.1.el9_4.x86_64", 0),
        ("2.15", "5.14.0-427", 0),
        ("2.15.5", "5.14.0-503.11.1.el9_5.x86_64", 1),
        ("2.15.5", "5.14.0-4270", 1),
        ("2.16.0", "5.14.0-427.13.1.el9_4.x86_64", 1),
    ],
)
def test_module_and_kernel_that_the_matrix_knows(lustre: str, kernel: str, found: int) -> None:
    matrix = load_matrix()
    known = Kernels(version="2.15", kernels=("5.14.0-427",), source="a changelog", grade="A")
    modules = tuple(
        module.model_copy(update={"known": (known,)}) if module.name == "lustre" else module
        for module in matrix.modules
    )
    mine = matrix.model_copy(update={"modules": modules})
    assert len(_of(MODULES, Stack(kernel=kernel, lustre=lustre), mine)) == found


@pytest.mark.parametrize(
    ("lustre", "kernel", "found"),
    [
        ("2.17.0", "6.8.0-35-generic", 0),
        ("2.17.0", "5.14.0-611.13.1.el9_7.x86_64", 0),
        ("2.17.0", "6.8.0-88-generic", 1),
        ("2.16.0", "6.8.0-35-generic", 1),
        ("2.16.0", "4.18.0-553.16.1.el8_10.x86_64", 0),
    ],
)
def test_lustre_goes_with_the_kernels_of_its_changelog(
    lustre: str, kernel: str, found: int
) -> None:
    assert len(_of(MODULES, Stack(kernel=kernel, lustre=lustre))) == found


def test_modules_that_build_against_each_other() -> None:
    stack = Stack(kernel="5.14.0-427", lustre="2.15.5", doca_ofed="3.1.0")
    assert _one("modules_go_together", stack, "warning").pins == ("lustre", "doca_ofed")
    assert _of("modules_go_together", replace(stack, doca_ofed=None)) == []
    beegfs = _one("modules_go_together", replace(stack, lustre=None, beegfs="8.1.0"), "warning")
    assert beegfs.source == "ThinkParQ/beegfs#84"


PMIX = "pmix_is_known_to_slurm"


def test_pmix_of_slurm() -> None:
    assert _of(PMIX, Stack(slurm="25.11.8", pmix="5.0.7")) == []
    assert _of(PMIX, Stack(slurm="25.05.2", pmix="6.0.0")) == []
    assert _of(PMIX, Stack(pmix="6.0.0")) == []
    old = _one(PMIX, Stack(slurm="25.05.1", pmix="6.0.0"))
    assert "25.05.2" in old.message
    assert _one(PMIX, Stack(slurm="25.11.8", pmix="7.0.0"), "warning").message.startswith("unknown")


def test_pmix_of_a_distributions_slurm() -> None:
    for slurm in (None, FIXED):
        stack = Stack(os=DEBIAN_13, slurm=slurm, pmix="5.0.7-1")
        assert _of(PMIX, stack) == []
        assert "PMIx 5" in _one(PMIX, replace(stack, pmix="4.2.9")).message
    assert "PMIx 4" in _one(PMIX, Stack(os=DEBIAN_12, pmix="5.0.7")).message
    assert _of(PMIX, Stack(os=OperatingSystem("ubuntu", "24.04"), pmix="4.2.9")) == []
    own = Stack(os=DEBIAN_13, slurm="25.11.8", pmix="4.2.9")
    assert _of(PMIX, own) == []


def test_pmix_of_open_mpi() -> None:
    rule = "openmpi_has_its_pmix"
    assert _of(rule, Stack(openmpi="5.0.7", pmix="4.2.0")) == []
    assert _of(rule, Stack(openmpi="5.0.7")) == []
    assert "4.2.0" in _one(rule, Stack(openmpi="5.0.7-1", pmix="4.1.2")).message
    assert _one(rule, Stack(openmpi="4.1.4", pmix="4.2.2"), "warning")


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("slurm", "25.11"),
        ("slurm", "26.05.4-0rc1"),
        ("slurm", "26.05.4rc1"),
        ("nvidia_driver", "580.*"),
        ("nvidia_driver", "580"),
        ("fabric_manager", "580"),
        ("cuda", "13"),
        ("kernel", "latest"),
        ("lustre", ""),
        ("nccl", "newest"),
    ],
)
def test_pin_that_is_no_version(name: str, version: str) -> None:
    (finding,) = _of("pins_are_versions", _pinned(Stack(), name, version))
    assert finding.pins == (name,)
    assert repr(version) in finding.message
    assert finding.severity == "error"


def test_errors_come_before_warnings() -> None:
    stack = Stack(slurm="24.11.5", lustre="2.15.5", cuda="13.0")
    severities = [finding.severity for finding in check_stack(stack)]
    assert severities == sorted(severities)
    assert len(set(severities)) == 2


ANY = st.one_of(
    st.none(),
    st.text(max_size=12),
    st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,2}){0,3}(-[0-9a-z+.]{1,8})?", fullmatch=True),
)
SYSTEMS = st.sampled_from([None, DEBIAN_12, DEBIAN_13, ROCKY])


# The first example reads the data, which a busy computer may take its time for.
@settings(deadline=None)
@given(st.fixed_dictionaries(dict.fromkeys(PINS, ANY)), SYSTEMS, st.booleans())
def test_no_stack_makes_the_checks_fail(
    pins: dict[str, str | None], system: OperatingSystem | None, nvswitch: bool
) -> None:
    findings = check_stack(replace(Stack(os=system, nvswitch=nvswitch), **pins))  # type: ignore[arg-type]
    rules = {check.__name__ for check in CHECKS}
    for finding in findings:
        assert finding.rule in rules
        assert finding.message
        assert finding.hint
        assert set(finding.pins) <= set(PINS)
        assert any(pins[name] is not None for name in finding.pins) or finding.pins == ("slurm",)
