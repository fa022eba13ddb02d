"""What /etc/nccl.conf must not say, and cannot."""

import pytest

from hpcsite.errors import Problem
from tests.unit.site.mini import SiteFolder

FILE = "group_vars/all/nccl.yml"
FABRIC = """\
site_fabrics:
  eth:
    kind: roce
    speed_gbit_s: 400
    rails: 3
    hcas: [mlx5_0, mlx5_1, mlx5_10]
"""


def nccl(folder: SiteFolder, *lines: str, fabric: str = "") -> None:
    folder.write(FILE, "site_nccl:\n" + "".join(f"  {line}\n" for line in lines) + fabric)


def found(folder: SiteFolder, name: str) -> list[Problem]:
    """Mistakes, else warnings; each must be that of a variable, in its line."""
    problems = folder.problems() or list(folder.load().warnings)
    for problem in problems:
        assert problem.key == f"site_nccl.{name}"
        assert problem.where is not None
        assert problem.where.line == folder.line(FILE, name)
        assert problem.hint
    return problems


def test_what_a_site_may_set(folder: SiteFolder) -> None:
    nccl(
        folder,
        "NCCL_DEBUG: WARN",
        "NCCL_IB_TC: 106",
        "NCCL_CROSS_NIC: 0",
        "NCCL_SOCKET_IFNAME: =eth0",
        "NCCL_IB_HCA: mlx5",
        "NCCL_IB_GID_INDEX: -1",
        "NCCL_P2P_DISABLE: 0",
    )
    assert folder.load().warnings == ()


@pytest.mark.parametrize("name", ["NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE"])
@pytest.mark.parametrize("value", ["1", '"1"'])
def test_fast_paths_stay_on(folder: SiteFolder, name: str, value: str) -> None:
    nccl(folder, f"{name}: {value}")
    assert [problem.code for problem in found(folder, name)] == ["HPC1801"]
    assert folder.problems() != []


def test_the_protocol_is_never_forced(folder: SiteFolder) -> None:
    nccl(folder, "NCCL_PROTO: LL128")
    assert [problem.code for problem in found(folder, "NCCL_PROTO")] == ["HPC1802"]
    assert folder.problems() != []


@pytest.mark.parametrize(
    "name",
    [
        "NCCL_ALGO",
        "NCCL_NET_GDR_LEVEL",
        "NCCL_MIN_NCHANNELS",
        "NCCL_IB_ADAPTIVE_ROUTING",
        "NCCL_IB_GID_INDEX",
    ],
)
def test_what_nccl_knows_better_is_doubted(folder: SiteFolder, name: str) -> None:
    nccl(folder, f"{name}: 3")
    assert [problem.code for problem in found(folder, name)] == ["HPC1803"]
    assert folder.problems() == []


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("'\"WARN\"'", "bare"),
        ('"a b"', "bare"),
        ('" WARN"', "bare"),
        ('"WARN # all"', "bare"),
        ('"a\\nb"', "bare"),
        ('""', "give it a value"),
        ("true", "write 1"),
        ("false", "write 0"),
    ],
)
def test_values_that_the_file_cannot_hold(folder: SiteFolder, value: str, hint: str) -> None:
    nccl(folder, f"NCCL_DEBUG: {value}")
    (problem,) = found(folder, "NCCL_DEBUG")
    assert problem.code == "HPC1807"
    assert hint in problem.hint


def test_a_name_that_is_the_beginning_of_another(folder: SiteFolder) -> None:
    nccl(folder, 'NCCL_IB_HCA: "mlx5_0:1,mlx5_1:1"', fabric=FABRIC)
    (problem,) = found(folder, "NCCL_IB_HCA")
    assert problem.code == "HPC1804"
    assert problem.message == "NCCL_IB_HCA: mlx5_1 also matches mlx5_10"
    assert problem.hint == 'write it exactly: NCCL_IB_HCA: "=mlx5_0:1,mlx5_1:1"'
    assert folder.problems() != []


def test_excluded_names_are_beginnings_too(folder: SiteFolder) -> None:
    nccl(folder, 'NCCL_IB_HCA: "^mlx5_1"', fabric=FABRIC)
    (problem,) = found(folder, "NCCL_IB_HCA")
    assert problem.code == "HPC1804"
    assert problem.hint.endswith('"^=mlx5_1"')


@pytest.mark.parametrize(
    "value", ["=mlx5_0,mlx5_1", "^=mlx5_1", "mlx5", "=mlx5_10:1", "^mlx4"], ids=str
)
def test_names_that_match_what_they_say(folder: SiteFolder, value: str) -> None:
    nccl(folder, f'NCCL_IB_HCA: "{value}"', fabric=FABRIC)
    assert found(folder, "NCCL_IB_HCA") == []


def test_all_that_match_are_named(folder: SiteFolder) -> None:
    nccl(folder, 'NCCL_IB_HCA: "mlx5_0,mlx5_1,mlx5_10"', fabric=FABRIC)
    assert [problem.code for problem in found(folder, "NCCL_IB_HCA")] == ["HPC1805"]


def test_without_known_devices_names_are_doubted(folder: SiteFolder) -> None:
    nccl(folder, "NCCL_IB_HCA: mlx5_1")
    (warning,) = found(folder, "NCCL_IB_HCA")
    assert warning.code == "HPC1805"
    assert folder.problems() == []


@pytest.mark.parametrize("value", ["=mlx5_0,mlx5_3", "=mlx5", "irdma"])
def test_devices_that_the_site_does_not_have(folder: SiteFolder, value: str) -> None:
    nccl(folder, f'NCCL_IB_HCA: "{value}"', fabric=FABRIC)
    assert [problem.code for problem in found(folder, "NCCL_IB_HCA")] == ["HPC1806"]
    assert folder.problems() == []


def test_devices_of_hosts_are_known(folder: SiteFolder) -> None:
    nccl(folder, 'NCCL_IB_HCA: "=mlx5_7"', fabric=FABRIC + "rdma_devices: [mlx5_7]\n")
    assert found(folder, "NCCL_IB_HCA") == []
