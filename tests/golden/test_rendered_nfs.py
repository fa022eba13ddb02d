"""NFS exports, nfsd's configuration and mount units, rendered by Ansible for a site of four hosts.

After a change that is meant: `HPCSITE_UPDATE_GOLDEN=1 pytest tests/golden`, then read the diff.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hpcsite.paths import content_dir
from hpcsite.site.ansible import ansible_environment

EXPECTED = Path(__file__).parent / "expected/nfs"
ADDRESSES = {"head": "10.1.0.1", "store": "fd00::2", "gpu01": "10.1.0.21", "login": "10.1.0.3"}
GROUPS = {
    "nfs_server": ["head", "store"],
    "nfs_client": ["head", "gpu01", "login"],
    "slurm_compute": ["gpu01"],
    "rdma": ["head", "gpu01"],
}
EXPORTS: list[dict[str, Any]] = [
    {"path": "/shared/fast", "server": "store", "mount": "/shared/fast-1", "automount": True},
    {"path": "/srv/home", "mount": "/home", "server": "head", "rdma": True},
    {"path": "/shared", "server": "head", "options": ["noatime"], "root_squash": False},
    {"path": "/sw", "server": "store", "read_only": True, "rdma": True},
]
USERS: list[dict[str, Any]] = [
    {"name": "alice", "uid": 2001, "group": "research", "ssh_keys": []},
    {"name": "bob", "uid": 2002, "home": "/shared/fast-1/bob"},
    {"name": "carol", "uid": 2003, "home": "/scratch/carol"},
    {"name": "dave", "uid": 2004, "state": "absent"},
]
# Ansible writes one file a host, all that the roles would write there one after the other.
PAGE = """\
{% macro show(role, name, item) -%}
==> {{ name if item is none else item.unit ~ '.' ~ name.rpartition('.')[2] }} <==
{{ lookup('ansible.builtin.template', roles ~ '/' ~ role ~ '/templates/' ~ name ~ '.j2',
          template_vars={'item': item}) }}
{%- endmacro %}
{% if 'nfs_server' in group_names %}
{{ show('nfs_server', 'hpcsite.exports', none) }}
{{ show('nfs_server', 'nfs.conf', none) }}
{% for export in __nfs_server_binds %}
{{ show('nfs_server', 'bind.mount', export) }}
{% endfor %}
{% endif %}
{% if 'nfs_client' in group_names %}
{% for export in __nfs_client_exports %}
{{ show('nfs_client', 'nfs.mount', export) }}
{% endfor %}
{% for export in __nfs_client_automounts %}
{{ show('nfs_client', 'nfs.automount', export) }}
{% endfor %}
{{ show('nfs_client', 'retry.service', none) }}
{{ show('nfs_client', 'slurmd.conf', none) if __nfs_client_has_slurmd else '' }}
{% endif %}
==> what the tasks loop over <==
{{ {'homes': __site_nfs_homes, 'here': __site_nfs_homes_here | map(attribute='name'),
    'points': __site_nfs_exports | nfs_mount_points(inventory_hostname),
    'units': __nfs_client_exports | nfs_units} | to_nice_yaml }}
"""


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("nfs")
    roles = content_dir() / "roles"
    variables = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "site_nfs_exports": EXPORTS,
        "site_users": USERS,
        "site_groups": [{"name": "research", "gid": 2000}],
        "__nfs_server_default_threads": 64,
        "roles": str(roles),
    }
    inventory = {
        "all": {
            "hosts": {name: {"site_address": address} for name, address in ADDRESSES.items()},
            "children": {g: {"hosts": dict.fromkeys(hosts)} for g, hosts in GROUPS.items()},
        }
    }
    play = {
        "hosts": "all",
        "gather_facts": False,
        "vars_files": [
            str(roles / role / part)
            for role in ("site", "nfs_server", "nfs_client")
            for part in ("defaults/main.yml", "vars/main.yml")
        ],
        "tasks": [
            {
                "ansible.builtin.template": {
                    "src": str(folder / "page.j2"),
                    "dest": f"{folder}/{{{{ inventory_hostname }}}}.txt",
                }
            }
        ],
    }
    (folder / "page.j2").write_text(PAGE)
    (folder / "hosts.json").write_text(json.dumps(inventory))
    (folder / "play.yml").write_text(json.dumps([play]))
    # The highest precedence: a role's own defaults would win over the inventory here.
    (folder / "vars.json").write_text(json.dumps(variables))
    argv = ["ansible-playbook", "-i", str(folder / "hosts.json"), "-e", f"@{folder}/vars.json"]
    done = subprocess.run(
        [*argv, str(folder / "play.yml")],
        env=ansible_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {path.name: path.read_text() for path in sorted(folder.glob("*.txt"))}


def test_files_are_as_expected(rendered: dict[str, str]) -> None:
    if os.environ.get("HPCSITE_UPDATE_GOLDEN"):
        EXPECTED.mkdir(parents=True, exist_ok=True)
        for name, text in rendered.items():
            (EXPECTED / name).write_text(text)
    assert sorted(rendered) == sorted(path.name for path in EXPECTED.iterdir())
    for name, text in rendered.items():
        assert text == (EXPECTED / name).read_text(), name


def test_nobody_but_the_clients_may_mount(rendered: dict[str, str]) -> None:
    """A path without a client in its line would be for everybody: exports(5)."""
    for name in ("head.txt", "store.txt"):
        text = rendered[name].partition("==> nfs.conf <==")[0]
        lines = text.splitlines()
        paths = [number for number, line in enumerate(lines) if line.startswith("/")]
        assert paths
        for number in paths:
            assert lines[number].endswith(" \\")
            assert lines[number + 1].startswith("  10.1.0.")
        assert "*" not in text
