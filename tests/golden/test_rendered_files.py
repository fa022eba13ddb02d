"""Files that a deploy would write, rendered offline through the roles' own filters and templates.

After a change that is meant: `HPCSITE_UPDATE_GOLDEN=1 pytest tests/golden`, then read the diff.
"""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpcsite.deploy.templates import filters, render_template, role_variables
from hpcsite.paths import content_dir
from hpcsite.site.inventory import parse_inventory

EXPECTED = Path(__file__).parent / "expected"
PASSWORD = "no-password#of-anyone"
Hostvars = dict[str, dict[str, Any]]


def lab() -> tuple[Hostvars, dict[str, list[str]]]:
    """The lab's inventory as it stands in the repository, less Ansible's own process."""
    folder = content_dir() / "inventory/lab"
    tree = yaml.safe_load((folder / "hosts.yml").read_text())
    common: dict[str, Any] = {}
    for path in sorted((folder / "group_vars/all").glob("*.yml")):
        common |= yaml.safe_load(path.read_text())
    hostvars: Hostvars = {}
    groups: dict[str, list[str]] = {}

    def visit(name: str, group: dict[str, Any]) -> list[str]:
        members = dict.fromkeys(group.get("hosts", {}))
        for host, values in group.get("hosts", {}).items():
            hostvars.setdefault(host, dict(common)).update(values or {})
        for child, below in group.get("children", {}).items():
            members |= dict.fromkeys(visit(child, below))
        groups[name] = list(members)
        return groups[name]

    visit("all", tree["all"])
    return hostvars, groups


def large() -> tuple[Hostvars, dict[str, list[str]]]:
    """A site of 100 nodes in three groups: declared GPU nodes, measured CPU nodes, a few large."""
    common = {
        "site_name": "campus",
        "site_domain": "hpc.example",
        "site_slurm_process_tracking": "cgroup",
        "site_slurm_parameters": {"SlurmctldParameters": "idle_on_node_suspend", "KillWait": 60},
        "site_node_groups": {
            "gpu": {
                "hardware": {
                    "sockets": 2,
                    "cores_per_socket": 56,
                    "threads_per_core": 2,
                    "memory_mib": 2_064_000,
                },
                "gpus": {"count": 8, "type": "h100"},
                "features": ["h100", "ib"],
            },
            "cpu": {"weight": 10},
            "fat": {"weight": 100, "memory_margin_percent": 2},
        },
        "site_partitions": [
            {"name": "gpu", "node_groups": ["gpu"], "max_time": "2-00:00:00"},
            {
                "name": "cpu",
                "node_groups": ["cpu", "fat"],
                "default": True,
                "default_time": "01:00:00",
                "parameters": {"ExclusiveUser": True},
            },
        ],
    }
    groups = {
        "gpu": [f"gpu{number:02}" for number in range(1, 33)],
        "cpu": [f"cpu{number:03}" for number in range(1, 65)],
        "fat": [f"fat{number}" for number in range(1, 5)],
    }
    hostvars: Hostvars = {"ctl": common | {"site_address": "10.1.0.1", "ansible_host": "ctl.mgmt"}}
    for net, (group, names) in enumerate(groups.items(), 1):
        for number, name in enumerate(names, 1):
            hostvars[name] = common | {"ansible_host": f"10.1.{net}.{number}"}
            if group != "gpu":
                hostvars[name]["slurm_evidence_result"] = {"evidence": measured(group, number)}
    del hostvars["cpu064"]["slurm_evidence_result"]
    groups["slurm_compute"] = [name for members in list(groups.values()) for name in members]
    groups |= {"slurm_controller": ["ctl"], "slurm_dbd": ["ctl"], "mariadb": ["ctl"]}
    return hostvars, groups | {"all": list(hostvars)}


def measured(group: str, number: int) -> dict[str, Any]:
    memory_mib = 515_000 if group == "cpu" else 4_120_000
    return {
        "cpus": 64,
        "sockets": 2,
        "cores_per_socket": 32,
        "threads_per_core": 1,
        "memory_mib": memory_mib - number,
        "gpu_devices": [],
        "cgroup_controllers": ["cpuset", "cpu", "io", "memory", "pids"],
    }


SITES = {"lab": lab, "campus": large}
FILES = ["slurm.conf", "gres.conf", "cgroup.conf", "slurmdbd.conf", "hosts"]


def rendered(site: str) -> dict[str, str]:
    hostvars, groups = SITES[site]()
    controller = groups["slurm_controller"][0]
    configure = filters()["slurm_configuration"]
    defaults = role_variables("slurmctld")
    paths = {name: defaults[f"slurmctld_{name}"] for name in ("state_dir", "spool_dir")}
    files: dict[str, str] = configure(hostvars, controller, groups, paths)["files"]
    variables = {
        **hostvars[controller],
        "inventory_hostname": controller,
        "inventory_dir": "/site",
        "hostvars": hostvars,
        "groups": groups,
    }
    return files | {
        "slurmdbd.conf": render_template(
            "slurmdbd", "slurmdbd.conf.j2", variables, secret=PASSWORD
        ),
        "hosts": render_template("base", "hosts.j2", variables),
    }


@pytest.mark.parametrize("site", SITES)
def test_files_are_as_expected(site: str) -> None:
    folder = EXPECTED / site
    files = rendered(site)
    assert sorted(files) == sorted(FILES)
    for name in FILES:
        if os.environ.get("HPCSITE_UPDATE_GOLDEN"):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(files[name])
        assert files[name] == (folder / name).read_text(), name


def test_the_lab_s_inventory_is_read_as_ansible_does() -> None:
    """`lab` above stands in for Ansible: the same groups as ansible-inventory's parser makes."""
    _, groups = lab()
    data: dict[str, Any] = {name: {"hosts": members} for name, members in groups.items()}
    parsed = parse_inventory(data | {"_meta": {"hostvars": {}}})
    assert set(parsed.groups) == set(groups) - {"all"}


@pytest.mark.parametrize("site", SITES)
def test_only_slurmdbd_s_file_holds_the_password(site: str) -> None:
    readers = {name for name, text in rendered(site).items() if "no-password" in text}
    assert readers == {"slurmdbd.conf"}


def test_a_second_rendering_over_the_first_changes_nothing() -> None:
    hostvars, groups = large()
    configure = filters()["slurm_configuration"]
    paths = {"state_dir": "/a", "spool_dir": "/b"}
    first = configure(hostvars, "ctl", groups, paths)
    for values in hostvars.values():
        values.pop("slurm_evidence_result", None)
    second = configure(hostvars, "ctl", groups, paths, first["files"]["slurm.conf"])
    assert second["files"] == first["files"]
    assert set(first["problems"]) == {"cpu064"}


def test_the_soft_roce_unit_is_as_expected() -> None:
    """An interface's name stands in the name of its unit as systemd writes it: `-` is `\\x2d`."""
    variables = {"rdma_mode": "soft_roce", "rdma_interface": "fabric-0"}
    text = render_template("rdma", "soft-roce.service.j2", variables)
    expected = EXPECTED / "hpcsite-soft-roce.service"
    if os.environ.get("HPCSITE_UPDATE_GOLDEN"):
        expected.write_text(text)
    assert text == expected.read_text()
