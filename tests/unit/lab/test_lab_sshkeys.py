"""Keys and known hosts of a lab."""

from ipaddress import IPv4Address
from pathlib import Path

from hpcsite.lab import sshkeys
from hpcsite.lab.spec import Endpoint


def test_a_key_is_made_once_and_mended_when_half_is_missing(tmp_path: Path) -> None:
    first = sshkeys.ensure_login_key(tmp_path / ".lab", "lab")
    assert first.startswith("ssh-ed25519 ")
    assert sshkeys.ensure_login_key(tmp_path / ".lab", "lab") == first
    key = sshkeys.login_key(tmp_path / ".lab")
    assert key.stat().st_mode & 0o777 == 0o600
    assert key.parent.stat().st_mode & 0o777 == 0o700
    key.with_name("id_ed25519.pub").unlink()
    assert sshkeys.ensure_login_key(tmp_path / ".lab", "lab") != first


def test_known_hosts_name_address_and_name(tmp_path: Path) -> None:
    (tmp_path / "ssh").mkdir()
    sshkeys.write_known_hosts(tmp_path, [("head", "10.213.0.10", "ssh-ed25519 AAAA root@head")])
    path = sshkeys.known_hosts(tmp_path)
    assert path.read_text() == "10.213.0.10,head ssh-ed25519 AAAA\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_forwarded_port_is_named_as_known_hosts_does() -> None:
    address = IPv4Address("127.0.0.1")
    assert Endpoint(address, 22121).known_host == "[127.0.0.1]:22121"
    assert Endpoint(address).known_host == "127.0.0.1"


def test_the_login_checks_host_keys_and_asks_nobody(tmp_path: Path) -> None:
    endpoint = Endpoint(IPv4Address("127.0.0.1"), 22121)
    argv = sshkeys.ssh_command(tmp_path, endpoint, seconds=5)
    assert argv[-3:] == ["-p", "22121", "root@127.0.0.1"]
    assert "ConnectTimeout=5" in argv
    assert "StrictHostKeyChecking=yes" in argv
    assert "BatchMode=yes" in argv
