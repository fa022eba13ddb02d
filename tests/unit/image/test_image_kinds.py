"""Which hosts share an image, and what makes an image another one."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from hpcsite.image import kinds
from hpcsite.image.kinds import by_kind, kind_of
from hpcsite.image.recipe import Recipe
from hpcsite.paths import content_dir
from hpcsite.site.model import Host, Site, SiteKeys

RECIPE = Recipe("trixie", "amd64", (), (), ())


def host(name: str, *groups: str, **variables: Any) -> Host:  # noqa: ANN401
    return Host(name=name, groups=frozenset(groups), address="192.0.2.1", vars=variables)


def site(*hosts: Host) -> Site:
    return Site(path=Path("/s"), keys=SiteKeys(name="s"), hosts={each.name: each for each in hosts})


def test_hosts_with_the_same_features_share_an_image() -> None:
    head = host("head", "slurm_controller", "all")
    nodes = [host(name, "slurm_compute", "rdma", name) for name in ("gpu01", "gpu02")]
    found = by_kind(site(head, *nodes), [head, *nodes])
    assert [[each.name for each in members] for members in found.values()] == [
        ["head"],
        ["gpu01", "gpu02"],
    ]
    assert [kind.name for kind in found] == ["slurm_controller", "slurm_compute+rdma"]


def test_a_host_on_which_programs_are_built_is_another_kind() -> None:
    controller = host("head", "slurm_controller")
    login = host("login", "slurm_login")
    assert kind_of(site(controller), controller).builds
    assert not kind_of(site(controller, login), controller).builds


def test_only_variables_of_install_stages_matter() -> None:
    plain = host("a", "slurm_compute")
    other = host("b", "slurm_compute", ansible_host="192.0.2.9", base_extra_packages=["strace"])
    same = host("c", "slurm_compute", ansible_host="192.0.2.8", mariadb_buffer_pool_mib=512)
    found = [kind_of(site(plain, other, same), each) for each in (plain, other, same)]
    assert found[0] == found[2] != found[1]
    assert json.loads(found[1].variables) == {"base_extra_packages": ["strace"]}
    assert len({kind.digest(RECIPE) for kind in found}) == 2


@pytest.mark.parametrize(
    ("file", "old", "new", "another"),
    [
        ("roles/munge/vars/Debian.yml", "munge", "munge2", True),
        ("roles/base/tasks/install.yml", "Install packages", "Install", True),
        ("playbooks/image.yml", "become: false", "become: true", True),
        (
            "roles/base/vars/Debian.yml",
            "__base_chrony_service: c",
            "__base_chrony_service: d",
            False,
        ),
        ("roles/packages/vars/main.yml", "mariadb: mariadb", "mariadb: munge", True),
        ("roles/munge/tasks/configure.yml", "name", "name ", False),
        (
            "roles/base/defaults/main.yml",
            "base_extra_packages: []",
            "base_extra_packages: [a]",
            True,
        ),
    ],
)
def test_what_install_stages_are_made_of_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, old: str, new: str, another: bool
) -> None:
    content = tmp_path / "content"
    for folder in ("roles", "playbooks", "plugins"):
        shutil.copytree(content_dir() / folder, content / folder)
    node = host("a", "slurm_compute")
    kind = kind_of(site(node), node)
    monkeypatch.setattr(kinds, "content_dir", lambda: content)
    before = kind.digest(RECIPE)
    path = content / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    kinds._install_stage.cache_clear()
    assert (kind.digest(RECIPE) != before) is another
    kinds._install_stage.cache_clear()


def test_another_base_makes_another_image() -> None:
    node = host("a", "slurm_compute")
    kind = kind_of(site(node), node)
    assert kind.digest(RECIPE) != kind.digest(Recipe("bookworm", "amd64", (), (), ()))


def test_daemons_that_roles_configure_first_do_not_start_with_an_image() -> None:
    assert {"mariadb", "munge", "slurmctld", "slurmd", "slurmdbd"} <= set(kinds.daemons())
    assert "chrony" not in kinds.daemons()
