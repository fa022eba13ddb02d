"""Holding a site's stack against the matrix. Pure."""

from collections.abc import Callable, Iterator

from hpcsite.site.compatibility.gpu_checks import (
    cuda_is_served,
    dcgm_knows_the_driver,
    driver_is_pinned,
    fabric_manager_is_the_drivers,
    nccl_is_served,
)
from hpcsite.site.compatibility.load import load_matrix
from hpcsite.site.compatibility.models import Finding, Matrix, Stack
from hpcsite.site.compatibility.module_checks import (
    kernel_is_pinned,
    modules_go_together,
    modules_go_with_the_kernel,
)
from hpcsite.site.compatibility.pins import pins_are_versions
from hpcsite.site.compatibility.slurm_checks import (
    openmpi_has_its_pmix,
    pmix_is_known_to_slurm,
    slurm_has_no_known_holes,
)

Check = Callable[[Stack, Matrix], Iterator[Finding]]

# A finding's `rule` is the name of its check.
CHECKS: tuple[Check, ...] = (
    pins_are_versions,
    slurm_has_no_known_holes,
    pmix_is_known_to_slurm,
    openmpi_has_its_pmix,
    driver_is_pinned,
    fabric_manager_is_the_drivers,
    cuda_is_served,
    nccl_is_served,
    dcgm_knows_the_driver,
    kernel_is_pinned,
    modules_go_with_the_kernel,
    modules_go_together,
)


def check_stack(stack: Stack, matrix: Matrix | None = None) -> list[Finding]:
    """Find everything in a stack that cannot be, or that nobody knows; errors come first."""
    held = load_matrix() if matrix is None else matrix
    findings = [finding for check in CHECKS for finding in check(stack, held)]
    return sorted(findings, key=lambda finding: finding.severity)
