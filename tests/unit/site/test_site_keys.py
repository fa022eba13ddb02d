"""Keys and values: unknown names, wrong types, templates, and how each is said."""

import pytest

from hpcsite.site import roles
from hpcsite.site.names import fold, nearest
from tests.unit.site.mini import SiteFolder

HOSTS, SITE, SLURM = "hosts.yml", "group_vars/all/site.yml", "group_vars/all/slurm.yml"

MISTYPED = (
    # file, old, new, text of the line, message, hint, code
    (
        SITE,
        "site_timezone",
        "site_timezon",
        "site_timezon:",
        "unknown key site_timezon",
        "site_timezone",
        "HPC1030",
    ),
    (SITE, "", "zzzqqq: 1\n", "zzzqqq:", "unknown key zzzqqq", "begin with local_", "HPC1030"),
    (
        HOSTS,
        "ansible_host: 10.9.0.10",
        "ansible_host: 10.9.0.10\n          ansible_usr: x",
        "ansible_usr",
        "unknown key ansible_usr",
        "did you mean ansible_user?",
        "HPC1030",
    ),
    (
        SLURM,
        "max_time",
        "max_tim",
        "max_tim:",
        "unknown key max_tim in site_partitions[0]",
        "max_time",
        "HPC1037",
    ),
    (
        SLURM,
        "sockets",
        "socket",
        "socket:",
        "unknown key socket in site_node_groups.gpu.hardware",
        "sockets",
        "HPC1037",
    ),
    (
        SLURM,
        "count: 8",
        "count: 8\n      zz: 1",
        "zz:",
        "unknown key zz in site_node_groups.gpu.gpus",
        "known here: count, type, device",
        "HPC1037",
    ),
    (SITE, "site_name: mini\n", "", None, "site_name is not set", "site_name: mysite", "HPC1036"),
    (
        SITE,
        "site_name: mini",
        "site_name: Mini Site",
        "Mini",
        'site_name is "Mini Site"; it must be lower-case',
        "docs/inventory.md",
        "HPC1040",
    ),
    (
        SITE,
        "site_name: mini",
        "site_name:",
        "site_name:",
        "site_name is empty; it must be text",
        "give it a value",
        "HPC1043",
    ),
    (
        SITE,
        "    gid: 2000\n",
        "",
        "- name: research",
        "site_groups[0] has no gid",
        "add `gid:`",
        "HPC1036",
    ),
    (
        SITE,
        "gid: 2000",
        "gid: 999",
        "gid: 999",
        "site_groups[0].gid is 999; it must be at least 1000",
        "",
        "HPC1039",
    ),
    (
        SITE,
        "gid: 2000",
        "gid: '2000'",
        "gid: '2000'",
        'is "2000"; it must be a whole number',
        "remove the quotes",
        "HPC1038",
    ),
    (
        SITE,
        "gid: 2000",
        "gid: 02000",
        "gid: 02000",
        "YAML reads 02000 as the octal number 1024",
        "write 2000",
        "HPC1035",
    ),
    (
        SLURM,
        '"10:00"',
        "10:00",
        "default_time",
        "default_time is 600; it must be text",
        'write "10:00"',
        "HPC1038",
    ),
    (
        SLURM,
        "default: true",
        "default: 'yes'",
        "default: 'yes'",
        'is "yes"; it must be true or false',
        "quotes",
        "HPC1038",
    ),
    (SLURM, "[gpu]", "gpu", "node_groups: gpu", 'is "gpu"; it must be a list', "", "HPC1038"),
    (
        SLURM,
        "[gpu]",
        "[]",
        "node_groups: []",
        "is a list; it must be a list of at least 1",
        "",
        "HPC1042",
    ),
    (SLURM, "count: 8", "count: 65", "count: 65", "it must be at most 64", "", "HPC1039"),
    (
        SLURM,
        "count: 8",
        "count: 8\n      device: nvidia",
        "device:",
        "a path below /dev",
        "",
        "HPC1040",
    ),
    (
        SLURM,
        "count: 8",
        "count: 8\n      device: /dev/nvidia0",
        "device:",
        "less the device's number",
        "",
        "HPC1040",
    ),
    (
        SLURM,
        "  gpu:\n    hard",
        "  gpu: [1]\n  cpu:\n    hard",
        "gpu: [1]",
        "it must be a mapping",
        "",
        "HPC1038",
    ),
    (
        SLURM,
        "    default: true\n",
        "    default: true\n    state: DRAINED\n",
        "state:",
        "it must be one of UP, DOWN, DRAIN",
        "did you mean DRAIN?",
        "HPC1041",
    ),
    (
        SLURM,
        "",
        "site_slurm_parameters:\n  A: [1]\n",
        "A:",
        "text, a number, true or false",
        "",
        "HPC1038",
    ),
    (
        SLURM,
        "",
        "site_slurm_parameters:\n  'a b': 1\n",
        "a b",
        "a key of slurm.conf",
        "",
        "HPC1040",
    ),
    (SITE, "", "site_lab: {network: 10.9.0.1/24}\n", "network", "10.9.0.1/24", "", "HPC1040"),
    (
        SITE,
        "site_name: mini",
        "site_name: '{{ x }}'",
        "site_name:",
        "site_name holds a template",
        "local_",
        "HPC1033",
    ),
    (
        SITE,
        "uid: 2002",
        "uid: '{{ x }}'",
        "uid: '{{",
        "site_users[1].uid holds a template",
        "local_",
        "HPC1033",
    ),
    (
        HOSTS,
        "10.9.0.21",
        "x\n              site_address: '{{ y }}'",
        "site_address",
        "site_address holds a template",
        "",
        "HPC1033",
    ),
    (
        "group_vars/gpu/x.yml",
        "",
        "site_timezone: Etc/UTC\n",
        "site_timezone",
        "site_timezone is set for the group gpu alone",
        "group_vars/all",
        "HPC1032",
    ),
    (
        "group_vars/all/zz.yml",
        "",
        "site_timezone: Europe/Berlin\n",
        "site_timezone",
        "site_timezone is set for the group all here again",
        "keep one",
        "HPC1031",
    ),
)


@pytest.mark.parametrize("case", MISTYPED, ids=lambda case: case[4].replace(" ", "-")[:50])
def test_mistake_is_found_where_it_stands(
    folder: SiteFolder, case: tuple[str, str, str, str | None, str, str, str]
) -> None:
    file, old, new, at, says, hint, code = case
    folder.edit(file, old, new)
    problems = folder.problems()
    found = [p for p in problems if says in p.message]
    assert found, problems
    # What follows from it (a missing gid leaves a user without group) may be said beside it.
    assert len(problems) <= 2, problems
    assert hint in found[0].hint
    assert found[0].code == code
    where = found[0].where
    assert where is not None
    if at is not None:
        assert where.path == folder.path / file
        assert at in where.path.read_text().splitlines()[where.line - 1]


def test_key_of_a_part_that_another_place_overrules_is_a_mistake(folder: SiteFolder) -> None:
    """Ansible reads group_vars/all after the variables of an inventory file, and says nothing."""
    folder.edit(
        "hosts.yml",
        "    slurm_controller:\n",
        "    slurm_controller:\n      vars: {site_name: x}\n",
    )
    (problem,) = folder.problems()
    assert problem.code == "HPC1032"
    assert problem.message == "site_name is set for the group slurm_controller alone"


def test_misspelt_key_of_one_host_is_one_mistake(folder: SiteFolder) -> None:
    folder.write("host_vars/gpu01.yml", "site_timezon: x\n")
    assert [problem.code for problem in folder.problems()] == ["HPC1030"]


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
    assert [problem.code for problem in folder.problems()] == [
        *("HPC1038", "HPC1041", "HPC1037", "HPC1036", "HPC1038")
    ]
    folder.write(
        file, 'demo_port: "{{ x }}"\ndemo_mode: fast\ndemo_list: [{name: a, active: true}]\n'
    )
    assert folder.problems() == []


@pytest.mark.parametrize(
    ("line", "says", "code"),
    [
        ("site_lab_gpus: '2'", 'site_lab_gpus is "2"; it must be a whole number', "HPC1038"),
        ("site_subnet_manager_priority: 16", "it must be at most 15", "HPC1039"),
        ("site_macs: {cluster: 0c-42}", "it must be a MAC address", "HPC1040"),
        ("site_addresses: {ib: 10.2.0}", 'site_addresses.ib is "10.2.0"', "HPC1040"),
        ("site_addresses: {ib: '{{ x }}'}", "site_addresses.ib holds a template", "HPC1033"),
    ],
)
def test_key_of_a_host_is_held_against_the_model(
    folder: SiteFolder, line: str, says: str, code: str
) -> None:
    folder.edit(HOSTS, "10.9.0.21", f"10.9.0.21\n              {line}")
    (problem,) = folder.problems()
    assert says in problem.message
    assert (problem.code, problem.host) == (code, "gpu01")
    assert problem.where is not None
    assert problem.where.line == folder.line(HOSTS, line)


def test_value_that_hosts_have_of_their_group_is_one_mistake(folder: SiteFolder) -> None:
    folder.write("group_vars/gpu/x.yml", "site_lab_gpus: -1\n")
    assert folder.places() == [
        ("group_vars/gpu/x.yml", 1, "site_lab_gpus is -1; it must be at least 0")
    ]


def test_keys_that_exclude_each_other(folder: SiteFolder) -> None:
    receiver = "{name: ops, email: a@b.example, webhook: 'https://b.example'}"
    folder.edit(SITE, "", f"site_monitoring: {{receivers: [{receiver}]}}\n")
    (problem,) = folder.problems()
    assert problem.message == (
        "site_monitoring.receivers[0] is a mapping; it must be one with either email or webhook, "
        "and not with both"
    )
    assert problem.code == "HPC1044"


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


def test_names_that_no_node_can_have_are_listed_as_they_are() -> None:
    assert fold(["gpu01", "gpu02"]) == "gpu[01-02]"
    assert fold(["\U00013bae,:", "leaf]["]) == "\U00013bae,:, leaf]["
