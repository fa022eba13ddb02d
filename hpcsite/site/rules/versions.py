"""Versions of software that do not go together, or of which nobody knows."""

from collections.abc import Iterator

from hpcsite.errors import Problem
from hpcsite.site.catalogue import Gpu, NodeProfile
from hpcsite.site.compatibility.checks import check_stack
from hpcsite.site.compatibility.models import Finding, OperatingSystem, Stack
from hpcsite.site.draft import Draft
from hpcsite.site.model import Software

_KEY = "site_software"
# Rule and severity of a finding → code.
_CODES = {
    ("pins_are_versions", "error"): "HPC1601",
    ("slurm_has_no_known_holes", "error"): "HPC1602",
    ("slurm_has_no_known_holes", "warning"): "HPC1603",
    ("pmix_is_known_to_slurm", "error"): "HPC1604",
    ("pmix_is_known_to_slurm", "warning"): "HPC1605",
    ("openmpi_has_its_pmix", "error"): "HPC1606",
    ("openmpi_has_its_pmix", "warning"): "HPC1607",
    ("driver_is_pinned", "warning"): "HPC1608",
    ("fabric_manager_is_the_drivers", "error"): "HPC1609",
    ("fabric_manager_is_the_drivers", "warning"): "HPC1610",
    ("cuda_is_served", "error"): "HPC1611",
    ("cuda_is_served", "warning"): "HPC1612",
    ("nccl_is_served", "error"): "HPC1613",
    ("nccl_is_served", "warning"): "HPC1614",
    ("dcgm_knows_the_driver", "error"): "HPC1615",
    ("kernel_is_pinned", "warning"): "HPC1616",
    ("modules_go_with_the_kernel", "warning"): "HPC1617",
    ("modules_go_together", "warning"): "HPC1618",
}
_DEBIAN = {"bookworm": "12", "trixie": "13"}
# A board of eight GPUs is the one on which NVSwitches join them; four are wired to each other.
_BOARD = 8


def versions_go_together(draft: Draft) -> Iterator[Problem]:
    """Hold the pins of a site against the compatibility matrix; without any, there is nothing."""
    software = draft.keys.software
    pins = [name for name in Software.model_fields if getattr(software, name) is not None]
    if not pins:
        return
    for finding in check_stack(stack_of(draft)):
        # A pin that is wrong in itself leaves nothing to judge.
        if not any((_KEY, pin) in draft.invalid for pin in finding.pins):
            yield _problem(draft, finding, pins)


def _problem(draft: Draft, finding: Finding, pins: list[str]) -> Problem:
    message = finding.message
    if finding.source and finding.source not in finding.hint:
        message += f" ({finding.source})"
    subject = finding.pins[0]
    # What is not pinned has no line: then the pin that is there and is judged by it has one.
    at = next((name for name in finding.pins if name in pins), None)
    path = (_KEY, subject) if subject in pins or at is None else (_KEY, at)
    code = _CODES[finding.rule, finding.severity]
    return draft.problem(message, path, finding.hint, code=code)


def stack_of(draft: Draft) -> Stack:
    """Make the stack of a site: its pins, and what is known of its GPUs and its system."""
    groups = draft.keys.node_groups.values()
    named = (draft.catalogue.nodes.get(group.hardware_profile or "") for group in groups)
    profiles = [profile for profile in named if profile]
    lab = draft.keys.lab
    release = _DEBIAN.get(lab.release) if lab else None
    software = draft.keys.software
    return Stack(
        os=OperatingSystem("debian", release) if release else None,
        gpu_models=tuple(dict.fromkeys(p.gpu.name for p in profiles if p.gpu)),
        nvswitch=any(has_nvswitch(profile) for profile in profiles),
        **{name: getattr(software, name) for name in Software.model_fields},
    )


def has_nvswitch(profile: NodeProfile) -> bool:
    """Whether the GPUs of a node are joined by NVSwitches; False also where that is unknown."""
    count = profile.gpu_count.value if profile.gpu_count else 0
    return count >= _BOARD and profile.gpu is not None and _is_on_a_board(profile.gpu)


def _is_on_a_board(gpu: Gpu) -> bool:
    """Whether a GPU is one for boards (SXM), and not a card, of which bridges join a few."""
    nvlink = gpu.nvlink_gbyte_s.value if gpu.nvlink_gbyte_s else 0
    return nvlink > 0 and "nvl" not in gpu.words


RULES = (versions_go_together,)
