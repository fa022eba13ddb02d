"""Keys and values: unknown names, wrong types, templates, and how each is said."""

import pytest

from hpcsite.site import roles
from hpcsite.site.names import fold, nearest
from tests.unit.site.mini import SiteFolder

HOSTS, SITE, SLURM = "hosts.yml", "group_vars/all/site.yml", "group_vars/all/slurm.yml"

MISTYPED = (
    # file, old, new, text of the line, message, hint
    (
        SITE,
        "site_timezone",
        "site_timezon",
        "site_timezon:",
        "unknown key site_timezon",
        "site_timezone",
    ),
    (SITE, "", "zzzqqq: 1\n", "zzzqqq:", "unknown key zzzqqq", "begin with local_"),
    (
        HOSTS,
        "ansible_host: 10.9.0.10",
        "ansible_host: 10.9.0.10\n          ansible_usr: x",
        "ansible_usr",
        "unknown key ansible_usr",
        "did you mean ansible_user?",
    ),
    (
        SLURM,
        "max_time",
        "max_tim",
        "max_tim:",
        "unknown key max_tim in site_partitions[0]",
        "max_time",
    ),
    (
        SLURM,
        "sockets",
        "socket",
        "socket:",
        "unknown key socket in site_node_groups.gpu.hardware",
        "sockets",
    ),
    (
        SLURM,
        "count: 8",
        "count: 8\n      zz: 1",
        "zz:",
        "unknown key zz in site_node_groups.gpu.gpus",
        "known here: count, type, device",
    ),
    (SITE, "site_name: mini\n", "", None, "site_name is not set", "site_name: mysite"),
    (
        SITE,
        "site_name: mini",
        "site_name: Mini Site",
        "Mini",
        'site_name is "Mini Site"; it must be lower-case',
        "docs/inventory.md",
    ),
    (
        SITE,
        "site_name: mini",
        "site_name:",
        "site_name:",
        "site_name is empty; it must be text",
        "give it a value",
    ),
    (SITE, "    gid: 2000\n", "", "- name: research", "site_groups[0] has no gid", "add `gid:`"),
    (
        SITE,
        "gid: 2000",
        "gid: 999",
        "gid: 999",
        "site_groups[0].gid is 999; it must be at least 1000",
        "",
    ),
    (
        SITE,
        "gid: 2000",
        "gid: '2000'",
        "gid: '2000'",
        'is "2000"; it must be a whole number',
        "remove the quotes",
    ),
    (
        SITE,
        "gid: 2000",
        "gid: 02000",
        "gid: 02000",
        "YAML reads 02000 as the octal number 1024",
        "write 2000",
    ),
    (
        SLURM,
        '"10:00"',
        "10:00",
        "default_time",
        "default_time is 600; it must be text",
        'write "10:00"',
    ),
    (
        SLURM,
        "default: true",
        "default: 'yes'",
        "default: 'yes'",
        'is "yes"; it must be true or false',
        "quotes",
    ),
    (SLURM, "[gpu]", "gpu", "node_groups: gpu", 'is "gpu"; it must be a list', ""),
    (SLURM, "[gpu]", "[]", "node_groups: []", "is a list; it must be a list of at least 1", ""),
    (SLURM, "count: 8", "count: 65", "count: 65", "it must be at most 64", ""),
    (SLURM, "count: 8", "count: 8\n      device: nvidia", "device:", "a path below /dev", ""),
    (
        SLURM,
        "count: 8",
        "count: 8\n      device: /dev/nvidia0",
        "device:",
        "less the device's number",
        "",
    ),
    (
        SLURM,
        "  gpu:\n    hard",
        "  gpu: [1]\n  cpu:\n    hard",
        "gpu: [1]",
        "it must be a mapping",
        "",
    ),
    (
        SLURM,
        "    default: true\n",
        "    default: true\n    state: DRAINED\n",
        "state:",
        "it must be one of UP, DOWN, DRAIN",
        "did you mean DRAIN?",
    ),
    (SLURM, "", "site_slurm_parameters:\n  A: [1]\n", "A:", "text, a number, true or false", ""),
    (SLURM, "", "site_slurm_parameters:\n  'a b': 1\n", "a b", "a key of slurm.conf", ""),
    (SITE, "", "site_lab: {network: 10.9.0.1/24}\n", "network", "10.9.0.1/24", ""),
    (
        SITE,
        "site_name: mini",
        "site_name: '{{ x }}'",
        "site_name:",
        "site_name holds a template",
        "local_",
    ),
    (
        SITE,
        "uid: 2002",
        "uid: '{{ x }}'",
        "uid: '{{",
        "site_users[1].uid holds a template",
        "local_",
    ),
    (
        HOSTS,
        "10.9.0.21",
        "x\n              site_address: '{{ y }}'",
        "site_address",
        "site_address holds a template",
        "",
    ),
    (
        "group_vars/gpu/x.yml",
        "",
        "site_timezone: Etc/UTC\n",
        "site_timezone",
        "not the same for all hosts",
        "group_vars/all",
    ),
    (
        "group_vars/all/zz.yml",
        "",
        "site_timezone: Europe/Berlin\n",
        "site_timezone",
        "site_timezone is set for the group all here again",
        "keep one",
    ),
)


@pytest.mark.parametrize("case", MISTYPED, ids=lambda case: case[4].replace(" ", "-")[:50])
def test_mistake_is_found_where_it_stands(
    folder: SiteFolder, case: tuple[str, str, str, str | None, str, str]
) -> None:
    file, old, new, at, says, hint = case
    folder.edit(file, old, new)
    problems = folder.problems()
    found = [p for p in problems if says in p.message]
    assert found, problems
    # What follows from it (a missing gid leaves a user without group) may be said beside it.
    assert len(problems) <= 2, problems
    assert hint in found[0].hint
    where = found[0].where
    assert where is not None
    if at is not None:
        assert where.path == folder.path / file
        assert at in where.path.read_text().splitlines()[where.line - 1]


def test_role_values_are_held_against_the_specification(
    folder: SiteFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {
        "demo_port": {"type": "int"},
        "demo_mode": {"type": "str", "choices": ["fast", "safe"]},
        "demo_list": {
            "type": "list",
            "elements": "dict",
            "options": {"name": {"type": "str", "required": True}, "active": {"type": "bool"}},
        },
    }
    monkeypatch.setattr("hpcsite.site.variables.role_options", lambda: options)
    file = "group_vars/all/roles.yml"
    folder.write(
        file,
        "demo_port: ssh\ndemo_mode: saef\n"
        "demo_list:\n  - name: a\n    actve: true\n  - active: 1\n",
    )
    assert folder.places() == [
        (file, 1, "demo_port must be a whole number"),
        (file, 2, "demo_mode is saef; it must be one of fast, safe"),
        (file, 5, "unknown key actve in demo_list[0]"),
        (file, 6, "demo_list[1] has no name"),
        (file, 6, "demo_list[1].active must be true or false"),
    ]
    folder.write(
        file, 'demo_port: "{{ x }}"\ndemo_mode: fast\ndemo_list: [{name: a, active: true}]\n'
    )
    assert folder.problems() == []


def test_role_options_are_those_of_the_roles() -> None:
    options = roles.role_options()
    assert options["munge_key_file"]["type"] == "path"
    assert not [name for name in options if name.startswith("__")]


def test_nearest_name() -> None:
    assert nearest("slurm_compue", ["slurm_compute", "slurm_controller"]) == "slurm_compute"
    assert nearest("zzz", ["slurm_compute"]) is None
    # gpu03 beside gpu02 is another node, not a mistyped one
    assert nearest("gpu03", ["gpu01", "gpu02"]) is None


def test_fold_keeps_padding() -> None:
    assert fold(["gpu02", "gpu01", "gpu10"]) == "gpu[01-02,10]"
    assert fold([]) == ""
