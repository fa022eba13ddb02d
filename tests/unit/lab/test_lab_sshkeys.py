"""Keys and known hosts of a lab."""

from pathlib import Path

from hpcsite.lab import sshkeys


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


def test_the_login_checks_host_keys_and_asks_nobody(tmp_path: Path) -> None:
    argv = sshkeys.ssh_command(tmp_path, "10.213.0.10")
    assert argv[-1] == "root@10.213.0.10"
    assert "StrictHostKeyChecking=yes" in argv
    assert "BatchMode=yes" in argv
