"""What every role keeps to, read from the files themselves."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpcsite.deploy.options import INSTALL_TAG
from hpcsite.deploy.tally import HOMES_TASK
from hpcsite.paths import content_dir
from hpcsite.site.model import Frozen, Gpus, Group, Hardware, NodeGroup, Partition, SiteKeys, User

ROLES = sorted(path for path in (content_dir() / "roles").iterdir() if path.name != "common")
TASK_FILES = sorted((content_dir() / "roles").glob("*/tasks/*.yml"))
BLOCKS = ("block", "rescue", "always")
role = pytest.mark.parametrize("role", ROLES, ids=lambda path: path.name)
task_file = pytest.mark.parametrize(
    "path", TASK_FILES, ids=lambda path: f"{path.parts[-3]}/{path.name}"
)


def load(path: Path) -> Any:  # noqa: ANN401 - whatever YAML can hold
    return yaml.safe_load(path.read_text()) if path.exists() else None


def options(role: Path) -> dict[str, dict[str, Any]]:
    return load(role / "meta/argument_specs.yml")["argument_specs"]["main"]["options"] or {}


def tasks(entries: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for entry in entries:
        yield entry
        for block in BLOCKS:
            yield from tasks(entry.get(block, []))


def leaves(options: dict[str, dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, option in options.items():
        yield name, option
        yield from leaves(option.get("options", {}))


@role
def test_specs_name_the_same_keys_and_values_as_the_defaults(role: Path) -> None:
    specified = {
        name: option.get("default")
        for name, option in options(role).items()
        if not option.get("required")
    }
    assert specified == (load(role / "defaults/main.yml") or {})


@role
def test_specs_are_typed_and_described(role: Path) -> None:
    for name, option in leaves(options(role)):
        assert option.get("type"), name
        assert option.get("description"), name
        assert option["type"] != "list" or option.get("elements"), name


@role
def test_keys_carry_the_role_s_name(role: Path) -> None:
    assert all(name.startswith(f"{role.name}_") for name in options(role))
    for path in (role / "vars").glob("*.yml"):
        assert all(name.startswith(f"__{role.name}_") for name in load(path) or {}), path


@role
def test_every_family_says_the_same_keys(role: Path) -> None:
    debian, redhat = (load(role / f"vars/{family}.yml") for family in ("Debian", "RedHat"))
    assert (debian is None) == (redhat is None)
    assert (debian or {}).keys() == (redhat or {}).keys()


@task_file
def test_task_files_are_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 100


@task_file
def test_tasks_keep_to_the_rules(path: Path) -> None:
    for task in tasks(load(path)):
        assert re.match(r"[A-Z]", task["name"]), task["name"]
        assert "ignore_errors" not in task, task["name"]
        assert not task.keys() & {"ansible.builtin.shell", "shell", "action", "local_action"}
        if "ansible.builtin.command" in task:
            command = task["ansible.builtin.command"]
            assert "changed_when" in task or "creates" in command, task["name"]


@task_file
def test_tasks_that_see_a_secret_do_not_log_it(path: Path) -> None:
    for task in tasks(load(path)):
        text = str(task)
        if re.search(r"munge_key_file|password_file|slurm\.sql|slurmdbd\.conf\.j2", text):
            assert task.get("no_log") is True, task["name"]


def test_no_template_but_the_secret_ones_reads_a_password() -> None:
    readers = {
        path.name
        for path in (content_dir() / "roles").glob("*/templates/*")
        if "password" in path.read_text()
    }
    assert readers == {"slurm.sql.j2", "slurmdbd.conf.j2"}


SCALARS = {"str": "string", "int": "integer", "bool": "boolean", "list": "array", "dict": "object"}


def schema_type(schema: dict[str, Any]) -> str:
    options = schema.get("anyOf", [schema])
    kinds = [option for option in options if option.get("type") != "null"]
    return "object" if "$ref" in kinds[0] else str(kinds[0]["type"])


@pytest.mark.parametrize(
    ("model", "specified"),
    [
        (SiteKeys, lambda spec: spec),
        (Group, lambda spec: spec["site_groups"]["options"]),
        (User, lambda spec: spec["site_users"]["options"]),
        (Partition, lambda spec: spec["site_partitions"]["options"]),
    ],
    ids=["site", "group", "user", "partition"],
)
def test_the_role_site_equals_the_model(
    model: type[Frozen], specified: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    prefix = "site_" if model is SiteKeys else ""
    spec = specified(options(content_dir() / "roles/site"))
    schema = model.model_json_schema()
    assert spec.keys() == {prefix + name for name in schema["properties"]}
    for name, field in schema["properties"].items():
        option = spec[prefix + name]
        assert option.get("required", False) == (name in schema.get("required", [])), name
        assert SCALARS[option["type"]] == schema_type(field), name
        assert option.get("default") == field.get("default"), name
        assert option.get("choices") == field.get("enum"), name


def test_every_play_is_named_by_its_layer_and_tagged_so() -> None:
    layers = {"base", "fabric", "storage", "software", "scheduler"}
    for layer in layers:
        for play in load(content_dir() / f"playbooks/{layer}.yml"):
            assert play["name"].startswith(f"{layer}: "), play["name"]
            assert play["tags"] == [layer]
            assert "roles" in play


def plays() -> list[dict[str, Any]]:
    layers = ("base", "fabric", "storage", "software", "scheduler")
    return [play for layer in layers for play in load(content_dir() / f"playbooks/{layer}.yml")]


def roles_of(play: dict[str, Any]) -> list[str]:
    return [entry["role"] for entry in play["roles"]]


def test_a_broken_controller_stops_the_run() -> None:
    for play in load(content_dir() / "playbooks/scheduler.yml"):
        central = play["hosts"] in {"mariadb", "slurm_dbd", "slurm_controller"}
        assert play.get("any_errors_fatal", False) is central, play["name"]
        assert (play["hosts"] == "all") == ("post_tasks" in play), play["name"]


def test_a_broken_nfs_server_stops_the_run() -> None:
    servers, clients = load(content_dir() / "playbooks/storage.yml")
    assert servers["hosts"] == "nfs_server"
    assert servers["any_errors_fatal"] is True
    assert not clients.get("any_errors_fatal", False)


def test_home_folders_that_were_left_out_fail_the_run_last_of_all() -> None:
    imports = load(content_dir() / "playbooks/site.yml")
    (play,) = load(content_dir() / "playbooks" / imports[-1]["ansible.builtin.import_playbook"])
    (task,) = play["tasks"]
    assert task["name"] == HOMES_TASK
    assert play["hosts"] == "all"
    # The layers of the roles that leave some out.
    assert play["tags"] == ["base", "storage"]
    registered = {
        entry["register"]
        for role in ("users", "homes")
        for entry in load(content_dir() / f"roles/{role}/tasks/configure.yml")
        if {"ssh_keys", "home_folders"} & entry.keys()
    }
    assert registered == set(re.findall(r"(\w+)\.left_out", task["vars"]["left_out"]))


def test_nodes_that_all_fail_do_not_end_the_run() -> None:
    """Ansible ends a run when all hosts of a play fail, so the controller is in each."""
    seen = set()
    for play in plays():
        if play["hosts"] == "all" or play.get("any_errors_fatal"):
            continue
        seen.update(roles_of(play))
        assert "slurm_controller" in play["hosts"].split(":"), play["name"]
        (leave,) = play["pre_tasks"]
        assert leave["ansible.builtin.meta"] == "end_host", play["name"]
        assert leave["when"], play["name"]
    assert seen == {
        *("rdma", "nfs_client", "openmpi", "verify_tools"),
        *("slurm_evidence", "slurmd", "slurm_login"),
    }


def test_all_roles_that_install_are_installed_at_once() -> None:
    """hpcsite deploy skips the roles' own installation, so a role not in the map would lack it."""
    folder = content_dir() / "roles"
    installing = {
        name
        for play in plays()
        for name in roles_of(play)
        if name != "packages" and (folder / name / "tasks/install.yml").exists()
    }
    variables = load(folder / "packages/vars/main.yml")
    mapped = set(variables["__packages_of_group"].values())
    named = set(re.findall(r"'([a-z_]+)'", variables["__packages_roles"]))
    assert installing <= mapped | named
    for name in installing:
        packages = f"__{name}_packages"
        assert packages in (load(folder / name / "vars/Debian.yml") or {}), packages


def test_hardware_models_are_dictionaries_to_ansible() -> None:
    """site_node_groups is a free dictionary in the spec; its shape is the model's alone."""
    node_group = options(content_dir() / "roles/site")["site_node_groups"]
    assert node_group["type"] == "dict"
    assert {Hardware, Gpus} <= {
        argument
        for field in NodeGroup.model_fields.values()
        for argument in getattr(field.annotation, "__args__", ())
    }


@role
def test_each_installation_is_skipped_where_all_were_installed_at_once(role: Path) -> None:
    if role.name == "packages" or not (role / "tasks" / "install.yml").exists():
        return
    (install,) = (task for task in load(role / "tasks" / "main.yml") if task["name"] == "Install")
    assert install["tags"] == [INSTALL_TAG]
