"""The files that make a copy of the image one machine."""

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest

from hpcsite.errors import CouldNotRunError
from hpcsite.lab import identity
from hpcsite.lab.identity import Environment
from hpcsite.lab.spec import Endpoint, Machine

ENVIRONMENT = Environment(
    IPv4Network("10.213.0.0/24"), 1400, ("192.0.2.1",), "http://proxy.example:3128", "ssh-ed25519 A"
)
HEAD = Machine(
    "head", IPv4Address("10.213.0.10"), Endpoint(IPv4Address("10.213.0.10")), domain="lab.example"
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in ("etc/systemd/network", "etc/ssh", "etc/apt/apt.conf.d", "root"):
        (tmp_path / "machine" / folder).mkdir(parents=True)
    return tmp_path / "machine"


@pytest.fixture
def host_key(tmp_path: Path) -> Path:
    key = tmp_path / "ssh_host_ed25519_key"
    key.write_text("private\n")
    key.with_name("ssh_host_ed25519_key.pub").write_text("ssh-ed25519 H\n")
    return key


def test_a_machine_gets_its_name_address_keys_and_the_hosts_name_servers(
    root: Path, host_key: Path
) -> None:
    identity.write_all(root, HEAD, ENVIRONMENT, host_key)
    assert (root / "etc/hostname").read_text() == "head\n"
    network = (root / "etc/systemd/network/10-host0.network").read_text()
    assert "Address=10.213.0.10/24\nGateway=10.213.0.1\n" in network
    assert "MTUBytes=1400\n" in network
    assert "10.213.0.10\thead.lab.example head\n" in (root / "etc/hosts").read_text()
    assert (root / "etc/resolv.conf").read_text().endswith("nameserver 192.0.2.1\n")
    assert "proxy.example:3128" in (root / "etc/apt/apt.conf.d/80proxy").read_text()
    assert (root / "etc/ssh/ssh_host_ed25519_key").stat().st_mode & 0o777 == 0o600
    assert (root / "root/.ssh").stat().st_mode & 0o777 == 0o700
    assert (root / "root/.ssh/authorized_keys").read_text() == "ssh-ed25519 A\n"


def test_two_machines_have_different_machine_ids(root: Path, host_key: Path) -> None:
    found = set()
    for _ in range(2):
        identity.write_all(root, HEAD, ENVIRONMENT, host_key)
        found.add((root / "etc/machine-id").read_text())
    assert len(found) == 2
    assert all(len(text.strip()) == 32 for text in found)


def test_a_link_in_a_machine_never_leads_to_the_hosts_files(tmp_path: Path, root: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "resolv.conf").write_text("the host's\n")
    (root / "etc/resolv.conf").symlink_to(outside / "resolv.conf")
    identity.put(root, "etc/resolv.conf", "the machine's\n")
    assert (outside / "resolv.conf").read_text() == "the host's\n"
    assert not (root / "etc/resolv.conf").is_symlink()

    (root / "etc/ssh").rmdir()
    (root / "etc/ssh").symlink_to(outside)
    with pytest.raises(CouldNotRunError, match="leads out"):
        identity.put(root, "etc/ssh/ssh_host_ed25519_key", "secret\n")
    assert sorted(path.name for path in outside.iterdir()) == ["resolv.conf"]


def test_resolv_conf_follows_the_host_unless_something_took_it_over(root: Path) -> None:
    path = root / "etc/resolv.conf"
    path.write_text(f"{identity.RESOLVER_MARK}nameserver 198.51.100.1\n")
    identity.refresh_resolver(root, ENVIRONMENT)
    assert path.read_text() == ENVIRONMENT.resolv_conf()

    path.write_text("nameserver 203.0.113.1\n")
    identity.refresh_resolver(root, ENVIRONMENT)
    assert path.read_text() == "nameserver 203.0.113.1\n"


def test_a_fingerprint_covers_what_only_a_restart_changes(host_key: Path) -> None:
    before = identity.fingerprint(HEAD, ENVIRONMENT, host_key)
    moved = replace(HEAD, address=IPv4Address("10.213.0.12"))
    assert identity.fingerprint(moved, ENVIRONMENT, host_key) != before
    elsewhere = Environment(ENVIRONMENT.network, 1500, ("203.0.113.1",), "", "ssh-ed25519 A")
    assert identity.fingerprint(HEAD, elsewhere, host_key) == before
