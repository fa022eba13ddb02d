"""Ansible is led into a root, whatever the inventory says of the host."""

import shlex
from pathlib import Path

from hpcsite.image import install


def test_the_connection_stands_paths_with_spaces() -> None:
    work = Path("/var/my cache/node-images/.building-x.work")
    words = shlex.split(install._connection(work)["ansible_ssh_common_args"])
    options = dict(word.split("=", 1) for word in words if "=" in word)
    assert words[:2] == ["-F", "none"]
    assert options["ProxyCommand"] == f'"{work}/enter-{{{{ inventory_hostname }}}}"'
    assert options["UserKnownHostsFile"] == f'"{work}/known_hosts"'


def test_what_an_inventory_may_say_of_a_connection_is_replaced() -> None:
    said = {
        *("ansible_connection", "ansible_host", "ansible_port", "ansible_user", "ansible_password"),
        *("ansible_become", "ansible_ssh_private_key_file", "ansible_ssh_common_args"),
        *("ansible_ssh_extra_args", "ansible_ssh_args", "ansible_python_interpreter"),
    }
    assert said <= set(install._connection(Path("/w")))


def test_the_way_in_is_a_program_that_enters_namespaces_and_the_root(tmp_path: Path) -> None:
    path = tmp_path / "enter-gpu01"
    install._write_entrance(path, Path("/a b/root"), tmp_path, "http://proxy.example:3128")
    words = shlex.split(path.read_text().splitlines()[1])
    assert words[:2] == ["exec", "setpriv"]
    assert words[-3:] == ["/a b/root", str(tmp_path), "http://proxy.example:3128"]
    assert path.stat().st_mode & 0o777 == 0o700
