"""Every kind of finding of the compatibility matrix reaches a site's problems, where its pin is."""

import ast
import inspect
from types import ModuleType

import pytest

from hpcsite.errors import InvalidSiteError, Problem
from hpcsite.site.catalogue import load_catalogue
from hpcsite.site.codes import CODES
from hpcsite.site.compatibility import checks, gpu_checks, module_checks, pins, slurm_checks
from hpcsite.site.rules.versions import _CODES, has_nvswitch
from tests.unit.site.mini import SiteFolder

PINS, SITE, SLURM = (
    "group_vars/all/software.yml",
    "group_vars/all/site.yml",
    "group_vars/all/slurm.yml",
)
OF_THE_GPUS = """\
    hardware:
      sockets: 1
      cores_per_socket: 8
      memory_mib: 4096
    gpus:
      count: 8
"""
AREA = "HPC16"


@pytest.fixture
def eight(folder: SiteFolder) -> SiteFolder:
    """Give the valid site with nodes whose GPUs are joined by NVSwitches."""
    folder.edit(SLURM, OF_THE_GPUS, "    hardware_profile: dgx-h100\n")
    return folder


def found(folder: SiteFolder, **software: str) -> list[Problem]:
    """Mistakes and warnings about these pins."""
    lines = "".join(f'  {name}: "{version}"\n' for name, version in software.items())
    folder.write(PINS, f"# what every node has\nsite_software:\n{lines}")
    try:
        every = list(folder.load().warnings)
    except InvalidSiteError as error:
        every = [*error.problems, *error.warnings]
    return [problem for problem in every if problem.code.startswith(AREA)]


DRIVER = {"nvidia_driver": "580.65.06", "kernel": "6.8.0-45-generic"}
CASES = (
    ("HPC1601", {"slurm": "24.11"}, "slurm"),
    ("HPC1602", {"slurm": "23.11.1"}, "slurm"),
    ("HPC1604", {"slurm": "24.11.5", "pmix": "6.0.0"}, "pmix"),
    ("HPC1605", {"pmix": "9.0.0"}, "pmix"),
    ("HPC1606", {"pmix": "3.2.1", "openmpi": "5.0.5"}, "pmix"),
    ("HPC1607", {"pmix": "4.2.1", "openmpi": "9.0.0"}, "openmpi"),
    ("HPC1608", {"cuda": "12.4"}, "cuda"),
    ("HPC1609", {**DRIVER, "fabric_manager": "580.65.07"}, "fabric_manager"),
    ("HPC1610", DRIVER, "nvidia_driver"),
    ("HPC1611", {"nvidia_driver": "470.82.01", "cuda": "13.0"}, "cuda"),
    ("HPC1612", {"nvidia_driver": "530.30.02", "cuda": "12.8"}, "cuda"),
    ("HPC1613", {"nvidia_driver": "535.54.03", "nccl": "2.27.3-1+cuda13.0"}, "nccl"),
    ("HPC1614", {**DRIVER, "nccl": "2.21.5"}, "nccl"),
    ("HPC1615", {**DRIVER, "dcgm": "3.3.5"}, "dcgm"),
    ("HPC1616", {"nvidia_driver": "580.65.06"}, "nvidia_driver"),
    ("HPC1617", {"lustre": "2.15.5", "kernel": "6.8.0-45-generic"}, "lustre"),
    ("HPC1618", {"lustre": "2.15.5", "doca_ofed": "2.9.0"}, "lustre"),
)


@pytest.mark.parametrize(("code", "software", "at"), CASES, ids=[case[0] for case in CASES])
def test_finding_is_a_problem_at_its_pin(
    eight: SiteFolder, code: str, software: dict[str, str], at: str
) -> None:
    problems = [problem for problem in found(eight, **software) if problem.code == code]
    assert problems
    for problem in problems:
        assert problem.key == f"site_software.{at}"
        assert problem.hint
        assert problem.where is not None
        assert problem.where.path == eight.path / PINS
        assert problem.where.line == eight.line(PINS, f"  {at}:")


def test_the_distribution_s_slurm_is_judged_where_the_distribution_is_known(
    folder: SiteFolder,
) -> None:
    assert found(folder, ucx="1.16.0") == []
    folder.edit(SITE, "", "site_lab: {network: 10.9.0.0/24, release: bookworm}\n")
    problems = found(folder, ucx="1.16.0")
    assert {problem.code for problem in problems} == {"HPC1603"}
    assert {problem.key for problem in problems} == {"site_software.slurm"}
    assert all(p.where and p.where.line == folder.line(PINS, "site_software") for p in problems)


def test_nothing_is_said_without_pins(folder: SiteFolder) -> None:
    folder.edit(SITE, "", "site_lab: {network: 10.9.0.0/24}\n")
    assert folder.problems() == []
    assert folder.load().warnings == ()
    folder.write(PINS, "site_software: {slurm: null, kernel: null}\n")
    assert folder.load().warnings == ()


def test_what_goes_together_is_allowed(eight: SiteFolder) -> None:
    software = {**DRIVER, "fabric_manager": "580.65.06", "dcgm": "4.4.0"}
    assert [p for p in found(eight, **software) if not CODES[p.code].warning] == []


def test_fabric_manager_is_no_matter_without_nvswitches(folder: SiteFolder) -> None:
    codes = {problem.code for problem in found(folder, **DRIVER, fabric_manager="580.65.07")}
    assert not codes & {"HPC1609", "HPC1610"}


def test_a_profile_that_nobody_knows_is_left_out(eight: SiteFolder) -> None:
    eight.edit(SLURM, "dgx-h100", "dgx-h1000")
    codes = {problem.code for problem in found(eight, **DRIVER, fabric_manager="580.65.07")}
    assert "HPC1609" not in codes


def test_a_pin_that_is_no_text_is_not_judged_besides(folder: SiteFolder) -> None:
    folder.write(PINS, 'site_software:\n  kernel: [6]\n  nvidia_driver: "580.65.06"\n')
    assert [problem.code for problem in folder.problems()] == ["HPC1038"]
    with pytest.raises(InvalidSiteError) as caught:
        folder.load()
    assert [warning.code for warning in caught.value.warnings] == []


def test_a_warning_can_be_acknowledged(folder: SiteFolder) -> None:
    folder.edit(
        SITE, "", "site_acknowledged:\n  - {code: HPC1616, key: site_software, reason: tried}\n"
    )
    (problem,) = found(folder, nvidia_driver="580.65.06")
    assert problem.acknowledged == "tried"


def test_nodes_with_nvswitches() -> None:
    nodes = load_catalogue().nodes
    assert has_nvswitch(nodes["dgx-a100-80"])
    assert has_nvswitch(nodes["dgx-b200"])
    assert has_nvswitch(nodes["xe9680-h200"])
    for name in ("generic-2xh100-nvl", "generic-4xl40s", "gh200", "generic-cpu", "lab-nspawn"):
        assert not has_nvswitch(nodes[name]), name


def findings(module: ModuleType) -> set[str]:
    """Rules that a module of the matrix makes findings of."""
    calls = (
        node
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Call)
    )
    names = (
        call.args[0] for call in calls if getattr(call.func, "id", "") == "Finding" and call.args
    )
    return {str(name.value) for name in names if isinstance(name, ast.Constant)}


def test_each_kind_of_finding_has_a_code() -> None:
    made = set().union(*(findings(m) for m in (gpu_checks, module_checks, pins, slurm_checks)))
    known = {check.__name__ for check in checks.CHECKS}
    assert made <= known
    assert {rule for rule, _ in _CODES} == known
    assert all(CODES[code].severity == severity for (_, severity), code in _CODES.items())
    assert set(_CODES.values()) == {case[0] for case in CASES} | {"HPC1603"}
