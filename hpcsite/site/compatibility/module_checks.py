"""Kernel modules that do not come with the kernel. Pure."""

from collections.abc import Iterator

from hpcsite.site.compatibility.models import TITLES, Finding, Matrix, Module, Stack
from hpcsite.site.compatibility.pins import version_of


def kernel_is_pinned(stack: Stack, matrix: Matrix) -> Iterator[Finding]:
    """Say which modules an update of the kernel would leave behind."""
    used = _used(stack, matrix)
    if not used or stack.kernel is not None:
        return
    titles = ", ".join(TITLES[module.name] for module in used)
    one = len(used) == 1
    yield Finding(
        "kernel_is_pinned",
        f"the kernel is not pinned, and {titles} {'has a module' if one else 'have modules'} "
        "outside of it: an update may leave nodes without",
        "set kernel of site_software",
        "; ".join(report.source for module in used for report in module.reports),
        "warning",
        ("kernel", *(module.name for module in used)),
    )


def modules_go_with_the_kernel(stack: Stack, matrix: Matrix) -> Iterator[Finding]:
    """Say of which modules nobody knows whether they build with the kernel."""
    if version_of(stack, "kernel") is None:
        return
    for module in _used(stack, matrix):
        if not module.judged or _is_known(stack, module):
            continue
        reports = "; ".join(f"{report.text} ({report.source})" for report in module.reports)
        yield Finding(
            "modules_go_with_the_kernel",
            f"unknown: whether {TITLES[module.name]} {stack.pin(module.name)} goes with kernel "
            f"{stack.kernel}; it is not in the matrix",
            f"build and load it on one node first. {reports}",
            "",
            "warning",
            (module.name, "kernel"),
        )


def modules_go_together(stack: Stack, matrix: Matrix) -> Iterator[Finding]:
    """Say of which pairs of modules nobody knows whether one builds against the other."""
    for pair in matrix.together:
        one, other = pair.modules
        if stack.pin(one) is None or stack.pin(other) is None:
            continue
        yield Finding(
            "modules_go_together",
            f"unknown: whether {TITLES[one]} {stack.pin(one)} goes with {TITLES[other]} "
            f"{stack.pin(other)}; it is not in the matrix",
            f"build and load both on one node first. {pair.text}",
            pair.source,
            "warning",
            (one, other),
        )


def _used(stack: Stack, matrix: Matrix) -> list[Module]:
    return [module for module in matrix.modules if stack.pin(module.name) is not None]


def _is_known(stack: Stack, module: Module) -> bool:
    return any(
        _begins(stack.pin(module.name) or "", entry.version)
        and any(_begins(stack.kernel or "", kernel) for kernel in entry.kernels)
        for entry in module.known
    )


def _begins(version: str, first: str) -> bool:
    """Say whether a version is `first` or an update of it: 5.14.0-427.13 is one of 5.14.0-427."""
    rest = version.removeprefix(first)
    return version.startswith(first) and (not rest or rest[0] in ".-_+~")
