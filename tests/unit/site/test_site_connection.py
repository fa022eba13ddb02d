"""Connections, Ansible's environment and the record of the last site."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from hpcsite.errors import CouldNotRunError, InvalidSiteError
from hpcsite.paths import content_dir
from hpcsite.site import ansible
from hpcsite.site.connection import require_key, ssh_argv
from hpcsite.site.model import Host, Site, SiteKeys
from hpcsite.site.record import last_site_path, remember_site

OPTIONS = ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]


def make(path: Path, **variables: object) -> tuple[Site, Host]:
    host = Host(name="gpu01", groups=frozenset(), address="10.0.0.1", vars=variables)
    return Site(path=path, keys=SiteKeys(name="x"), hosts={"gpu01": host}), host


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, ["--", "gpu01"]),
        ({"ansible_host": "10.0.0.9"}, ["--", "10.0.0.9"]),
        ({"ansible_ssh_host": "10.0.0.9", "ansible_ssh_port": 23}, ["-p", "23", "--", "10.0.0.9"]),
        (
            {"ansible_port": 2222, "ansible_user": "root"},
            ["-p", "2222", "-l", "root", "--", "gpu01"],
        ),
        (
            {"ansible_ssh_private_key_file": "{{ inventory_dir }}/{{ inventory_hostname }}.key"},
            ["-i", "/x y/gpu01.key", "--", "gpu01"],
        ),
        (
            {
                "ansible_ssh_common_args": "-o 'ProxyCommand=ssh -W %h:%p gw' -4",
                "ansible_ssh_extra_args": "-v",
            },
            ["-o", "ProxyCommand=ssh -W %h:%p gw", "-4", "-v", "--", "gpu01"],
        ),
        ({"ansible_host": "-oProxyCommand=x"}, ["--", "-oProxyCommand=x"]),
    ],
)
def test_ssh_command_line(variables: dict[str, Any], expected: list[str]) -> None:
    assert ssh_argv(*make(Path("/x y"), **variables)) == OPTIONS + expected


def test_key_below_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/admin")
    argv = ssh_argv(*make(Path("/x"), ansible_private_key_file="~/.ssh/id"))
    assert argv[-4:] == ["-i", "/home/admin/.ssh/id", "--", "gpu01"]


@pytest.mark.parametrize(
    ("value", "says", "code"),
    [
        ("{{ lookup('pipe', 'id') }}", "cannot be rendered", "HPC1312"),
        ("{{ foo }}", "'foo' is undefined", "HPC1312"),
        ("{{ inventory_dir.__class__.__mro__ }}", "cannot be rendered", "HPC1312"),
        ("{{ inventory_dir", "cannot be rendered", "HPC1312"),
        ("'open", "cannot be split", "HPC1313"),
    ],
)
def test_variable_that_cannot_be_used(value: str, says: str, code: str) -> None:
    with pytest.raises(InvalidSiteError) as caught:
        ssh_argv(*make(Path("/x"), ansible_ssh_common_args=value))
    (problem,) = caught.value.problems
    assert problem.message.startswith("ansible_ssh_common_args of gpu01 cannot be")
    assert says in problem.message
    assert problem.code == code
    assert problem.hint


def test_key_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    site, _ = make(tmp_path, ansible_ssh_private_key_file="{{ inventory_dir }}/id")
    with pytest.raises(CouldNotRunError, match="/id cannot be read") as caught:
        require_key(site)
    assert "set ansible_ssh_private_key_file" in caught.value.hint
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    require_key(site)
    monkeypatch.delenv("SSH_AUTH_SOCK")
    (tmp_path / "id").write_text("")
    require_key(site)
    require_key(make(tmp_path)[0])


def test_one_key_that_is_there_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    (tmp_path / "gpu01").write_text("")
    site, host = make(
        tmp_path, ansible_ssh_private_key_file="{{ inventory_dir }}/{{ inventory_hostname }}"
    )
    both = {"gpu01": host, "gpu02": host.model_copy(update={"name": "gpu02"})}
    require_key(site.model_copy(update={"hosts": both}))


def test_environment_finds_configuration_and_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.setenv("LC_ALL", "C")
    environment = ansible.ansible_environment()
    assert Path(environment["ANSIBLE_CONFIG"]) == content_dir() / "ansible.cfg"
    first = environment["PATH"].split(os.pathsep)[0]
    assert (Path(first) / "ansible-playbook").is_file()
    assert environment["LC_ALL"] == "C.UTF-8"
    assert "ANSIBLE_STRATEGY" not in environment


def test_mitogen_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = ansible.ansible_environment(strategy="auto")
    assert environment["ANSIBLE_STRATEGY"] == "mitogen_linear"
    folder = Path(environment["ANSIBLE_STRATEGY_PLUGINS"])
    assert (folder / "mitogen_linear.py").is_file()
    assert "ansible_mitogen" not in sys.modules
    monkeypatch.setattr(ansible, "mitogen_strategy_dir", lambda: None)
    assert "ANSIBLE_STRATEGY" not in ansible.ansible_environment(strategy="auto")
    with pytest.raises(CouldNotRunError, match="mitogen_linear is not installed"):
        ansible.ansible_environment(strategy="mitogen_linear")


def test_missing_ansible_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr("sysconfig.get_path", lambda *_: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CouldNotRunError) as caught:
        ansible.tools_dir()
    assert "pip install ansible-core" in caught.value.hint


def test_last_site_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = tmp_path / "state" / "deep"
    monkeypatch.setenv("HPCSITE_STATE_DIR", str(state))
    with pytest.raises(CouldNotRunError, match="no site was deployed") as caught:
        last_site_path()
    assert "hpcsite verify inventory/lab" in caught.value.hint
    folder = tmp_path / "mysite"
    folder.mkdir()
    remember_site(make(folder)[0])
    assert last_site_path() == folder
    assert state.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in state.iterdir()] == ["last-site.json"]
    folder.rmdir()
    with pytest.raises(CouldNotRunError, match="is gone"):
        last_site_path()


@pytest.mark.parametrize("text", ["", "{", "[]", json.dumps({"name": "x"}), "null", "\x00"])
def test_damaged_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("HPCSITE_STATE_DIR", str(tmp_path))
    (tmp_path / "last-site.json").write_text(text)
    with pytest.raises(CouldNotRunError, match="cannot be read"):
        last_site_path()


def test_state_folder_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HPCSITE_STATE_DIR", str(tmp_path / "file" / "state"))
    with pytest.raises(CouldNotRunError) as caught:
        remember_site(make(tmp_path)[0])
    assert "HPCSITE_STATE_DIR" in caught.value.hint
