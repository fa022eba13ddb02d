"""No secret stands in plain text; no message repeats one."""

import pytest

from hpcsite.site import load
from hpcsite.site.rules import secrets
from tests.unit.site.mini import SiteFolder, resolve

FILE = "group_vars/all/own.yml"
VALUE = "hunter2-7f3a"
PRIVATE = """\
local_deploy: |
  -----BEGIN OPENSSH PRIVATE KEY-----
  b3BlbnNzaC1rZXktdjEAAAAA
  -----END OPENSSH PRIVATE KEY-----
"""


def codes(folder: SiteFolder) -> list[tuple[str, str, int]]:
    """Code, key and line of each mistake, none of which may hold the secret."""
    problems = folder.problems()
    assert VALUE not in repr(problems)
    return [(p.code, p.key, p.where.line if p.where else 0) for p in problems]


@pytest.mark.parametrize(
    "name",
    [
        "ansible_become_password",
        "ansible_become_pass",
        "local_bmc_password",
        "local_ldap_passwd",
        "local_api_token",
        "local_secret",
        "local_munge_key",
        "local_tls_private_key",
        "local_BMC_Password",
    ],
)
def test_secret_by_name(folder: SiteFolder, name: str) -> None:
    folder.write(FILE, f"local_x: 1\n{name}: {VALUE}\n")
    assert codes(folder) == [("HPC1810", name, 2)]


@pytest.mark.parametrize(
    "line",
    [
        "local_secret: \"{{ lookup('file', inventory_dir ~ '/secrets/x') }}\"",
        'local_password: ""',
        "local_password:",
        "local_use_token: true",
        "local_munge_key: /etc/munge/munge.key",
        "local_password_file: /etc/x",
        "local_compass: north",
        "local_ssh_public_key: ssh-ed25519 AAAA",
        "ansible_ssh_private_key_file: /root/.ssh/id",
        "local_proxy: http://proxy.example.org:3128",
        "local_mail: mailto:ops@example.org",
    ],
)
def test_what_is_no_secret_in_plain_text(folder: SiteFolder, line: str) -> None:
    folder.write(FILE, f"{line}\n")
    assert codes(folder) == []


def test_vaulted_values(written: SiteFolder) -> None:
    vaulted = "!vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  3333\n"
    written.write(FILE, f"local_password: {vaulted}ansible_become_password: {vaulted}")
    assert codes(written) == []


def test_secret_below_other_names(folder: SiteFolder) -> None:
    folder.write(FILE, f"local_bmcs:\n  - user: root\n    password: {VALUE}\n  - password: 12345\n")
    assert codes(folder) == [
        ("HPC1810", "local_bmcs[0].password", 3),
        ("HPC1810", "local_bmcs[1].password", 4),
    ]


def test_secrets_in_a_list(folder: SiteFolder) -> None:
    folder.write(FILE, f"local_password:\n  - {VALUE}\n")
    assert codes(folder) == [("HPC1810", "local_password[0]", 2)]


def test_secret_among_slurms_keys(folder: SiteFolder) -> None:
    folder.write(FILE, f"site_slurm_parameters:\n  JobCompPass: {VALUE}\n")
    assert ("HPC1810", "site_slurm_parameters.JobCompPass", 2) in codes(folder)


def test_secret_of_a_host(folder: SiteFolder) -> None:
    folder.edit("hosts.yml", "10.9.0.21\n", f"10.9.0.21\n              local_password: {VALUE}\n")
    folder.write("host_vars/gpu02/x.yml", f"local_password: {VALUE}\n")
    line = folder.line("hosts.yml", "local_password")
    assert sorted(codes(folder)) == [
        ("HPC1810", "local_password", 1),
        ("HPC1810", "local_password", line),
    ]


def test_private_key_under_any_name(folder: SiteFolder) -> None:
    folder.write(FILE, PRIVATE)
    assert codes(folder) == [("HPC1811", "local_deploy", 1)]


def test_password_in_a_web_address(folder: SiteFolder) -> None:
    folder.write(FILE, f"local_proxy: http://site:{VALUE}@proxy.example.org:3128\n")
    assert codes(folder) == [("HPC1812", "local_proxy", 1)]


def test_options_that_a_role_hides(folder: SiteFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {
        "local_hidden": {"no_log": True},
        "local_outer": {"options": {"pin": {"no_log": True}}},
    }
    monkeypatch.setattr(secrets, "role_options", lambda: options)
    folder.write(FILE, f"local_hidden: {VALUE}\nlocal_outer:\n  pin: {VALUE}\n")
    assert codes(folder) == [("HPC1810", "local_hidden", 1), ("HPC1810", "local_outer.pin", 3)]


def test_login_by_password_is_one_mistake(folder: SiteFolder) -> None:
    folder.write(FILE, f"ansible_password: {VALUE}\n")
    assert codes(folder) == [("HPC1311", "ansible_password", 1)]


def test_secret_in_an_ini_inventory(folder: SiteFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def resolved(*_: object) -> object:
        inventory = resolve(folder.path)
        for host in inventory.hosts.values():
            host["local_password"] = VALUE
        return inventory

    monkeypatch.setattr(load, "read_inventory", resolved)
    folder.write("more", f"[all:vars]\nlocal_password={VALUE}\n")
    assert codes(folder) == [("HPC1810", "local_password", 2)]
