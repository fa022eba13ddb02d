from pathlib import Path

import pytest

from hpcsite.deploy.render import render_site, write_files
from hpcsite.deploy.templates import render_template, role_value
from hpcsite.errors import CouldNotRunError
from hpcsite.site.model import Host, Site, SiteKeys

HOSTS = {"head": ("10.0.0.10", {"slurm_controller", "slurm_dbd"}), "n1": ("10.0.0.11", {"cpu"})}


def site(**head: object) -> Site:
    keys = {
        "name": "lab",
        "node_groups": {
            "cpu": {"hardware": {"sockets": 1, "cores_per_socket": 8, "memory_mib": 8000}}
        },
        "partitions": [{"name": "cpu", "node_groups": ["cpu"], "default": True}],
    }
    hosts = {
        name: Host(
            name=name,
            address=address,
            groups=frozenset(groups | ({"slurm_compute"} if name == "n1" else set())),
            vars={"ansible_host": address} | (head if name == "head" else {}),
        )
        for name, (address, groups) in HOSTS.items()
    }
    return Site(path=Path("/site"), keys=SiteKeys.model_validate(keys), hosts=hosts)


def test_declared_hardware_counts_less_the_margin_of_memory() -> None:
    assert "NodeName=n1 NodeAddr=10.0.0.11 CPUs=8 Sockets=1 CoresPerSocket=8 ThreadsPerCore=1 " in (
        text := render_site(site())["slurm.conf"]
    )
    assert "RealMemory=7600" in text


def test_a_role_s_variable_of_the_inventory_counts_even_as_a_template() -> None:
    here = site(base_dir="/srv", slurmctld_state_dir="{{ base_dir }}/state")
    assert "StateSaveLocation=/srv/state\n" in render_site(here)["slurm.conf"]


def test_a_template_that_needs_a_host_is_no_bug_of_hpcsite_s() -> None:
    here = site(slurmctld_state_dir="/srv/{{ ansible_facts.hostname }}")
    with pytest.raises(CouldNotRunError, match="slurmctld_state_dir cannot be rendered"):
        render_site(here)


def test_without_a_controller_only_the_hosts_are_left() -> None:
    hosts = {
        name: host.model_copy(update={"groups": frozenset()}) for name, host in site().hosts.items()
    }
    assert set(render_site(site().model_copy(update={"hosts": hosts}))) == {"hosts"}


def test_a_role_s_private_variables_are_worked_out() -> None:
    variables = {"groups": {"mariadb": ["db"]}, "inventory_hostname": "head"}
    assert role_value("slurmdbd", "__slurmdbd_database_host", variables) == "db"


def test_secrets_are_masked_unless_they_are_given() -> None:
    variables = {"groups": {}, "inventory_hostname": "head", "inventory_dir": "/site"}
    masked = render_template("slurmdbd", "slurmdbd.conf.j2", variables)
    assert "StoragePass=***\n" in masked
    given = render_template("slurmdbd", "slurmdbd.conf.j2", variables, secret="a#b")
    assert "StoragePass=a\\#b\n" in given


def test_files_of_an_earlier_rendering_go_and_foreign_ones_stay(tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    write_files({"topology.conf": "# Managed by hpcsite: x\n", "hosts": "a\n"}, out)
    (out / "exports.own").write_text("/srv *\n")
    assert write_files({"hosts": "b\n"}, out) == ["hosts"]
    assert {path.name: path.read_text() for path in out.iterdir()} == {
        "hosts": "b\n",
        "exports.own": "/srv *\n",
    }
