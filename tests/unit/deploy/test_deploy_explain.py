"""Causes are found with the real ssh, which connects to nothing."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from hpcsite.deploy.events import HostEvent
from hpcsite.deploy.explain import explained
from hpcsite.site.model import Host, Site, SiteKeys
from hpcsite.slurm.hardware import BREAKS

MITOGEN_KEY = "error occurred: SSH password was requested, but none specified"
MITOGEN_HOST_KEY = (
    "Host key checking is enabled, and SSH reported an unrecognized or mismatching host key."
)
SSH_KEY = "Failed to connect to the host via ssh: root@10.0.0.5: Permission denied (publickey)."
SSH_HOST_KEY = "Failed to connect to the host via ssh: Host key verification failed."


def site_of(folder: Path, *, lab: bool = False, **variables: str | int) -> Site:
    known = folder / "known_hosts"
    known.touch()
    options = f"-F none -o 'UserKnownHostsFile=\"{known}\"' -o GlobalKnownHostsFile=/nowhere"
    given = {"ansible_host": "10.0.0.5", "ansible_user": "root", **variables}
    keys: dict[str, Any] = {"name": "trial"}
    if lab:
        keys["lab"] = {"network": "10.0.0.0/24"}
    host = Host(
        name="n1",
        groups=frozenset(),
        address="10.0.0.5",
        vars={**given, "ansible_ssh_common_args": options},
    )
    return Site(path=folder, keys=SiteKeys.model_validate(keys), hosts={"n1": host})


def lost(message: str) -> HostEvent:
    return HostEvent("n1", "unreachable", "Look", None, message)


@pytest.mark.parametrize("said", [MITOGEN_KEY, SSH_KEY])
def test_a_refused_key_is_named_with_user_and_address(tmp_path: Path, said: str) -> None:
    key = tmp_path / "id"
    site = site_of(tmp_path, ansible_ssh_private_key_file=str(key))
    assert "does not exist here" in explained(site, lost(said)).message
    key.touch()
    cause = explained(site, lost(said))
    assert cause.message == f"the key {key} was refused for root@10.0.0.5"
    assert "authorized_keys" in cause.hint
    none = explained(site_of(tmp_path), lost(said))
    assert none.message == "none of your ssh keys was accepted for root@10.0.0.5"


@pytest.mark.parametrize("port", [22, 2222])
@pytest.mark.parametrize("said", [MITOGEN_HOST_KEY, SSH_HOST_KEY])
def test_a_host_key_is_unknown_or_changed(tmp_path: Path, said: str, port: int) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    site = site_of(folder, ansible_port=port)
    known = folder / "known_hosts"
    unknown = explained(site, lost(said))
    assert unknown.message == f"the host key of 10.0.0.5 is unknown: it is not in {known}"
    scan = "ssh-keyscan 10.0.0.5" if port == 22 else "ssh-keyscan -p 2222 10.0.0.5"
    assert unknown.hint.endswith(f"{scan} >> '{known}'")

    subprocess.run(["ssh-keygen", "-q", "-N", "", "-f", tmp_path / "k"], check=True)
    name = "10.0.0.5" if port == 22 else "[10.0.0.5]:2222"
    known.write_text(f"{name} {(tmp_path / 'k.pub').read_text()}")
    changed = explained(site, lost(said))
    assert f"10.0.0.5 shows another host key than {known} has" in changed.message
    assert "ssh-keygen -R " in changed.hint
    assert name in changed.hint


def test_a_lab_says_how_its_machines_are_started(tmp_path: Path) -> None:
    said = "ssh: connect to host 10.0.0.5 port 22: No route to host"
    assert explained(site_of(tmp_path), lost(said)).hint == ""
    cause = explained(site_of(tmp_path, lab=True), lost(said))
    assert cause.message == said
    assert cause.address == "10.0.0.5"
    silent = explained(site_of(tmp_path), lost("Connection timed out."))
    assert silent.message == "10.0.0.5: Connection timed out."
    assert f"hpcsite lab start {tmp_path} NODES" in cause.hint


def test_a_broken_contract_can_be_set_right_on_both_sides(tmp_path: Path) -> None:
    site = site_of(tmp_path, lab=True)
    broken = HostEvent("n1", "failed", "Hold", None, f"n1 {BREAKS}: group n declares 8 GPUs")
    assert "group_vars, and then deploy without --limit" in explained(site, broken).hint
    assert explained(site, HostEvent("n1", "failed", "Hold", None, "no space")).hint == ""
