"""Twelve mistakes of different areas in one inventory: all of them in one run, each at its line."""

import json
import re
from pathlib import Path

import pytest

from hpcsite.errors import ExitCode, InvalidSiteError
from hpcsite.site.load import load_site
from tests.unit.test_cli import run

# Each line with a mistake ends in its code.
FOLDER = {
    "hosts.ini": """\
[slurm_controller]
head ansible_host=10.9.0.10

[slurm_dbd]
head

[mariadb]
head

[slurm_logn]  # HPC1110
login ansible_host=10.9.0.11

[gpu]
gpu01 ansible_host=10.9.0.21
gpu02 ansible_host=10.9.0.22 site_lab_gpus=8
gpu03 ansible_host=10.9.0.22  # HPC1306

[slurm_compute:children]
gpu

[nfs_server]
head

[nfs_client:children]
slurm_compute

[rdma:children]
gpu
""",
    "group_vars/all/site.yml": """\
site_name: twelve
site_timezone: Europe/Berlin
site_tmezone: Europe/Paris  # HPC1030
site_custom_groups: []
site_groups:
  - name: research
    gid: 2000
site_users:
  - name: alice
    uid: 2001
    group: research
    accounts: [physics]
  - name: bob
    uid: 2001  # HPC1504
    accounts: [physics]
""",
    "group_vars/all/slurm.yml": """\
site_node_groups:
  gpu:
    hardware_profile: dgx-h100
site_partitions:
  - name: batch
    node_groups: [gpu]
    default: true
    max_time: 1-00:00:00
  - name: long
    node_groups:
      - gpuu  # HPC1202
""",
    "group_vars/all/storage.yml": """\
site_nfs_exports:
  - path: /srv/home
    mount: /home
site_scratch:
  - groups: [gpu]
    path: /home  # HPC1413
    devices: [/dev/nvme2n1]
""",
    "group_vars/all/accounts.yml": """\
site_accounts:
  - name: science
  - name: physics
    parent: sience  # HPC1512
""",
    "group_vars/all/software.yml": """\
site_software:
  kernel: 6.8.0-88-generic
  nvidia_driver: 580.65.06
  fabric_manager: 580.65.07  # HPC1609
""",
    "group_vars/all/network.yml": """\
site_networks:
  cluster:
    kind: ethernet
    subnet: 10.9.0.0/24
    groups: [slurm_compute]
  ib:
    kind: infiniband
    subnet: 10.9.0.128/25  # HPC1330
    groups: []
""",
    "group_vars/rdma/rdma.yml": """\
rdma_mode: infinband  # HPC1041
""",
    "host_vars/gpu01.yml": """\
site_address: 10.9.0.300  # HPC1302
""",
    "host_vars/gpu02/more.yml": """\
site_lab_memory_mib: many  # HPC1038
""",
}
_MARK = re.compile(r"#.*(HPC\d{4})$")


@pytest.fixture
def twelve(tmp_path: Path) -> Path:
    """Give the folder with the mistakes."""
    for name, text in FOLDER.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def seeded() -> list[tuple[str, int, str]]:
    """File, line and code of each mistake."""
    return sorted(
        (name, number, mark[1])
        for name, text in FOLDER.items()
        for number, line in enumerate(text.splitlines(), start=1)
        if (mark := _MARK.search(line))
    )


def test_all_twelve_are_found_in_one_run_and_nothing_else(twelve: Path) -> None:
    assert len(seeded()) == 12
    assert len({code[:5] for _, _, code in seeded()}) >= 7
    with pytest.raises(InvalidSiteError) as caught:
        load_site(twelve)
    assert (
        sorted(
            (str(p.where.path.relative_to(twelve)), p.where.line, p.code)
            for p in caught.value.problems
            if p.where
        )
        == seeded()
    )


def test_command_says_all_twelve(
    twelve: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "validate", str(twelve)) == ExitCode.INVALID_SITE
    shown = capsys.readouterr()
    assert shown.out == ""
    said = shown.err.replace("\n", " ")
    for name, line, code in seeded():
        assert re.search(rf"{re.escape(str(twelve / name))}:{line}: .*?\[{code}\]", said), code


def test_machine_reads_all_twelve(
    twelve: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "validate", "--json", str(twelve)) == ExitCode.INVALID_SITE
    result = json.loads(capsys.readouterr().out)
    assert result["valid"] is False
    assert (
        sorted(
            (str(Path(p["path"]).relative_to(twelve)), p["line"], p["code"])
            for p in result["problems"]
        )
        == seeded()
    )
