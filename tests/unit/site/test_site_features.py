"""Features of a site: what needs what, and which of them this version sets up."""

import re

import pytest

from hpcsite.paths import content_dir
from hpcsite.site.groups import FEATURES, NOT_APPLIED, Feature
from hpcsite.site.model import SiteKeys
from tests.unit.site.mini import SiteFolder

HOSTS = "hosts.yml"
BEEGFS = ("beegfs_mgmtd", "beegfs_meta", "beegfs_storage", "beegfs_client")
LUSTRE = ("lustre_mgs", "lustre_mds", "lustre_oss", "lustre_client")
MONITORING = ("prometheus", "alertmanager", "grafana")
EACH = pytest.mark.parametrize("feature", FEATURES.values(), ids=lambda feature: feature.name)
PLAYS = "\n".join(
    path.read_text(encoding="utf-8") for path in sorted(content_dir().glob("playbooks/*.yml"))
)
ROLES = "\n".join(
    path.read_text(encoding="utf-8")
    for path in sorted(content_dir().glob("roles/*/*/*"))
    if path.is_file() and "site" not in path.relative_to(content_dir() / "roles").parts[:1]
)


def put(folder: SiteFolder, host: str, *groups: str) -> None:
    for group in groups:
        folder.edit(HOSTS, "", f"    {group}:\n      hosts:\n        {host}:\n")


def about(folder: SiteFolder) -> list[tuple[str, str, str]]:
    """Say what is wrong with groups; that file systems have keys too is the affair of others."""
    found = [problem for problem in folder.problems() if problem.code.startswith("HPC11")]
    return [(problem.code, problem.key, problem.message) for problem in found]


@EACH
def test_what_is_deployed_has_a_play(feature: Feature) -> None:
    assert bool(re.search(rf"\b{feature.name}\b", PLAYS)) == feature.deployed


@pytest.mark.parametrize("key", NOT_APPLIED)
def test_what_is_not_applied_is_a_key_that_no_role_reads(key: str) -> None:
    assert key in SiteKeys.model_fields
    assert f"site_{key}" not in ROLES + PLAYS


@EACH
def test_needs_are_features(feature: Feature) -> None:
    assert set(feature.needs) <= set(FEATURES) - {feature.name}


def test_a_file_system_and_monitoring_of_one_host_are_valid(folder: SiteFolder) -> None:
    put(folder, "head", *BEEGFS, *LUSTRE, *MONITORING)
    put(folder, "login", "slurm_backup_controller")
    assert about(folder) == []


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        *((BEEGFS, name) for name in BEEGFS[:3]),
        *((LUSTRE, name) for name in LUSTRE[:3]),
        (MONITORING, "prometheus"),
    ],
)
def test_each_part_needs_the_others(
    folder: SiteFolder, names: tuple[str, ...], missing: str
) -> None:
    left = [name for name in names if name != missing]
    put(folder, "head", *left)
    assert about(folder) == [
        ("HPC1119", name, f"{name} needs {missing}, which has no hosts") for name in left
    ]


@pytest.mark.parametrize("client", [BEEGFS[3], LUSTRE[3]])
def test_clients_may_be_left_out(folder: SiteFolder, client: str) -> None:
    put(folder, "head", *(name for name in (*BEEGFS, *LUSTRE) if name != client))
    assert about(folder) == []


def test_a_client_without_any_server(folder: SiteFolder) -> None:
    put(folder, "gpu01", "lustre_client")
    found = [problem for problem in folder.problems() if problem.code == "HPC1119"]
    assert [problem.message.split()[2] for problem in found] == [
        "lustre_mds,",
        "lustre_mgs,",
        "lustre_oss,",
    ]
    assert found[0].where is not None
    assert found[0].where.line == folder.line(HOSTS, "lustre_client:")


def test_a_controller_is_not_its_own_backup(folder: SiteFolder) -> None:
    put(folder, "head", "slurm_backup_controller")
    problem = next(problem for problem in folder.problems() if problem.code == "HPC1124")
    assert about(folder) == [("HPC1124", "head", "head is the controller and its own backup")]
    assert problem.where is not None
    assert problem.where.line == folder.line(HOSTS, "        head:")


def test_a_backup_needs_a_controller(folder: SiteFolder) -> None:
    folder.edit(HOSTS, "    slurm_controller:\n", "    slurm_backup_controller:\n")
    assert [problem.code for problem in folder.problems()] == ["HPC1117"]


def test_the_second_of_two_controllers_is_told_where_backups_go(folder: SiteFolder) -> None:
    folder.edit(
        HOSTS, "10.9.0.10\n", "10.9.0.10\n        head2:\n          ansible_host: 10.9.0.12\n"
    )
    (problem,) = folder.problems()
    assert problem.code == "HPC1118"
    assert "slurm_backup_controller" in problem.hint


@pytest.mark.parametrize(
    ("other", "warned"), [("gpu2", True), ("gpu002", True), ("gpu20", False), ("gp02", False)]
)
def test_leading_zeros_make_names_that_people_mix_up(
    folder: SiteFolder, other: str, warned: bool
) -> None:
    folder.edit(HOSTS, "            gpu01:\n", f"            {other}:\n")
    warnings = folder.load().warnings
    assert [warning.code for warning in warnings] == ["HPC1107"] * warned
    if warned:
        assert warnings[0].message == f"the names {other} and gpu02 differ by leading zeros only"
        assert warnings[0].where is not None
        assert warnings[0].where.line == folder.line(HOSTS, "gpu02:")
