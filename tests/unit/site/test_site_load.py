"""The whole way, with the real ansible-inventory."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from hpcsite.errors import CouldNotRunError, InvalidSiteError
from hpcsite.paths import content_dir
from hpcsite.site import inventory
from hpcsite.site.inventory import parse_inventory, read_inventory
from hpcsite.site.load import load_site
from tests.unit.site.mini import SiteFolder, resolve

SITE = "group_vars/all/site.yml"


def test_the_stand_in_of_the_other_tests_is_faithful(written: SiteFolder) -> None:
    written.edit("hosts.yml", "", "  hosts:\n    stray: {ansible_host: 10.9.0.40}\n")
    written.write("group_vars/slurm_compute/x.yml", "local_a: 1\nlocal_b: 1\nlocal_c: 1\n")
    written.write("group_vars/gpu/x.yml", "local_b: 2\nlocal_c: 2\n")
    written.write("host_vars/gpu01/x.yml", "local_c: 3\n")
    real = read_inventory(written.path)
    assert real == resolve(written.path)
    assert [real.hosts["gpu01"][f"local_{name}"] for name in "abc"] == [1, 2, 3]


def test_lab_inventory_is_valid() -> None:
    path = content_dir() / "inventory" / "lab"
    site = load_site(path)
    assert site.path == path
    assert list(site.hosts) == ["head", "login", "gpu01", "gpu02"]
    assert [host.name for host in site.in_group("slurm_compute")] == ["gpu01", "gpu02"]
    assert site.hosts["gpu01"].groups == {"slurm_compute", "gpu"}
    assert site.node_group_of(site.hosts["gpu01"]) == "gpu"
    assert site.keys.partitions[0].default_time == "10:00"


def test_site_of_the_written_folder(written: SiteFolder) -> None:
    secret = "{{ lookup('env', 'X') | default('hunter2') }}"
    written.edit(SITE, "", f'ansible_become_password: "{secret}"\nlocal_note: x\n')
    written.edit(SITE, "", "local_secret: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  3333\n")
    site = written.load()
    assert (site.name, site.cluster_name) == ("mini", "mini")
    gpu01 = site.hosts["gpu01"]
    assert gpu01.address == "10.9.0.21"
    assert gpu01.where is not None
    assert gpu01.where.line == written.line("hosts.yml", "gpu01:")
    assert gpu01.vars["local_note"] == "x"
    assert "hunter2" not in repr(site)
    assert site.secrets_dir == written.path / "secrets"


def test_relative_path_is_shown_as_given(
    written: SiteFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(written.path.parent)
    assert load_site(Path("mini")).path == written.path
    written.edit(SITE, "site_timezone", "site_timezon")
    with pytest.raises(InvalidSiteError) as caught:
        load_site(Path("mini"))
    line = written.line(SITE, "site_timezon")
    assert str(caught.value.problems[0].where) == f"mini/{SITE}:{line}"


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        ("hosts2", "[gpu\ngpu01\n", "Ansible cannot read this"),
        (
            "loop.yml",
            "all: {children: {a: {children: {b: {children: {a: {}}}}}}}\n",
            "recursive dependency loop",
        ),
        ("hosts3", "[gpu]\ngpu01 foo\n", "Expected key=value host variable assignment, got: foo"),
    ],
)
def test_what_only_ansible_refuses(written: SiteFolder, file: str, text: str, says: str) -> None:
    written.write(file, text)
    (problem,) = written.problems()
    assert says in problem.message
    assert problem.code == "HPC1025"
    assert problem.where is not None
    assert problem.where.path == written.path / file
    assert "ansible-inventory -i" in problem.hint


def test_encrypted_file_that_no_password_opens(
    written: SiteFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    password = tmp_path / "password"
    password.write_text("wrong\n")
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(password))
    written.write("group_vars/all/vault.yml", "$ANSIBLE_VAULT;1.1;AES256\n3333\n")
    (problem,) = written.problems()
    assert "Ansible cannot read this" in problem.message


def test_values_of_an_encrypted_file_stay_out_of_the_site(
    written: SiteFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    password = tmp_path / "password"
    password.write_text("right\n")
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(password))
    vault = "group_vars/all/vault.yml"
    written.write(vault, "local_token_of_x: hunter2\n")
    tool = Path(sys.executable).parent / "ansible-vault"
    subprocess.run([tool, "encrypt", written.path / vault], check=True, capture_output=True)
    site = written.load()
    assert "local_token_of_x" not in site.hosts["head"].vars


def test_inventory_that_does_not_end(written: SiteFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    script = written.path / "dynamic"
    mark = written.path / ".pid"
    script.write_text(f"#!/bin/sh\necho $$ > {mark}\nexec sleep 60\n")
    script.chmod(0o755)
    # On a busy computer Ansible has not even started the script when the shorter time is over.
    for seconds in (2, 8, 30):
        monkeypatch.setattr(inventory, "TIMEOUT_S", seconds)
        with pytest.raises(CouldNotRunError, match=f"did not end within {seconds} s"):
            written.load()
        if mark.exists() and mark.read_text():
            break
    # A killed process may take a moment to go, and be a zombie for another; then it runs no more.
    deadline = time.monotonic() + 10
    while state_of(mark.read_text().strip()) not in ("gone", "Z", "X"):
        assert time.monotonic() < deadline, "the inventory's own process still runs"
        time.sleep(0.05)


def state_of(pid: str) -> str:
    try:
        return (Path("/proc") / pid / "stat").read_text().split()[2]
    except (FileNotFoundError, ProcessLookupError):
        return "gone"


def test_dynamic_inventory_is_checked_without_lines(written: SiteFolder) -> None:
    script = written.path / "dynamic"
    script.write_text(
        "#!/bin/sh\necho '"
        '{"gpu": {"hosts": ["gpu03"]},'
        ' "_meta": {"hostvars": {"gpu03": {"ansible_host": "10.9.0.23", "frobnicate": 1}}}}'
        "'\n"
    )
    script.chmod(0o755)
    (problem,) = written.problems()
    assert problem.message == "unknown key frobnicate"
    assert problem.where is not None
    assert problem.where.path == written.path


def test_no_hosts(tmp_path: Path) -> None:
    (tmp_path / "hosts.yml").write_text("all:\n  vars: {}\n")
    with pytest.raises(InvalidSiteError, match="1 error") as caught:
        load_site(tmp_path)
    assert caught.value.problems[0].message == "the inventory has no hosts"
    assert caught.value.problems[0].code == "HPC1103"


def test_groups_of_groups() -> None:
    data = {
        "all": {"children": ["ungrouped", "a"]},
        "a": {"children": ["b"]},
        "b": {"children": ["c"], "hosts": ["h1"]},
        "c": {"hosts": ["h2"]},
    }
    read = parse_inventory(data)
    assert read.groups == {"a": {"h1", "h2"}, "b": {"h1", "h2"}, "c": {"h2"}}
    assert read.groups_of("h2") == {"a", "b", "c"}
    assert read.parents == {"a": frozenset(), "b": {"a"}, "c": {"a", "b"}}
    assert list(read.hosts) == ["h1", "h2"]


def test_reading_touches_nothing(written: SiteFolder) -> None:
    before = sorted((path, path.stat().st_mtime_ns) for path in written.path.rglob("*"))
    written.load()
    assert sorted((path, path.stat().st_mtime_ns) for path in written.path.rglob("*")) == before


def test_profiles_of_the_site_are_no_inventory(written: SiteFolder) -> None:
    """Files of hardware/ are the catalogue's: neither Ansible nor hpcsite takes them for hosts."""
    written.write("hardware/ours.yml", "nodes:\n  ours-h100:\n    title: Ours\n")
    site = written.load()
    assert list(site.hosts) == ["head", "login", "gpu01", "gpu02"]
    assert "nodes" not in read_inventory(written.path).groups


def test_yaml_inventory_may_do_without_a_suffix(written: SiteFolder) -> None:
    """Ansible reads it so; as INI each of its lines would be a host."""
    (written.path / "hosts.yml").rename(written.path / "hosts")
    site = load_site(written.path)
    assert "gpu01" in site.hosts
    written.edit("hosts", "gpu01", "gpu01.example")
    (problem,) = written.problems()
    assert problem.code == "HPC1101"
    assert str(problem.where).startswith(str(written.path / "hosts") + ":")
