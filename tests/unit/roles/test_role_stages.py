"""Roles keep their stages apart: images take the install stage of a role and nothing else of it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpcsite.deploy.options import INSTALL_TAG
from hpcsite.paths import content_dir

ROLES = sorted(path for path in (content_dir() / "roles").iterdir() if path.name != "common")
INSTALLING = [path for path in ROLES if (path / "tasks/install.yml").exists()]
# The one role that installs for all others, untagged: `hpcsite deploy` skips INSTALL_TAG.
FOR_ALL = "packages"
BLOCKS = ("block", "rescue", "always")
KEYWORDS = {
    *("name", "when", "tags", "vars", "loop", "loop_control", "register", "notify", "become"),
    *("changed_when", "failed_when", "until", "retries", "delay", "environment", "no_log"),
    *("run_once", "delegate_to", "any_errors_fatal", "check_mode", "diff", "throttle", "async"),
    *("become_user", "poll", "args", "listen", "ignore_unreachable", *BLOCKS),
}
IMPORTS = ("import_tasks", "include_tasks", "import_role", "include_role")
# An install stage takes packages and variables, and looks at nothing else of a host.
COMMON = ("../../common/tasks/set_vars.yml", "../../common/tasks/packages.yml")
VARIABLES = ("include_vars", "set_fact", "assert")
PACKAGES = ("apt", "dnf", "dnf5", "package", "pip", "yum", "missing_packages")
INSTALLS = re.compile(r"\b(apt|apt-get|dnf|pip3?|yum)\b.*\binstall\b")


def tasks(path: Path) -> Iterator[dict[str, Any]]:
    yield from _unpacked(yaml.safe_load(path.read_text()) or [], ())


def _unpacked(entries: list[dict[str, Any]], tags: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    for entry in entries:
        own = entry.get("tags", ())
        all_tags = (*tags, *([own] if isinstance(own, str) else own))
        inner = [task for block in BLOCKS for task in entry.get(block, [])]
        if inner:
            yield from _unpacked(inner, all_tags)
        else:
            yield {**entry, "tags": all_tags}


def action(task: dict[str, Any]) -> tuple[str, Any]:
    """Module of a task without its collection, and what it is given."""
    name = next(key for key in task if key not in KEYWORDS)
    return name.removeprefix("ansible.builtin."), task[name]


def problems(role: Path) -> list[str]:
    """Everything in which a role mixes its stages."""
    found = []
    for path in sorted((role / "tasks").glob("*.yml")):
        check = _install_stage if path.stem == "install" else _other_stage
        found += [
            f"{role.name}/tasks/{path.name}: {task.get('name')}: {problem}"
            for task in tasks(path)
            if (problem := check(role, *action(task), task["tags"]))
        ]
    if (role / "tasks/install.yml").exists() and not _imports_install(role):
        found.append(f"{role.name}/tasks/main.yml: does not import install.yml")
    return found


def _install_stage(role: Path, module: str, given: Any, _tags: tuple[str, ...]) -> str:  # noqa: ANN401
    if module in {*PACKAGES, *VARIABLES} or (module == "import_tasks" and given in COMMON):
        return ""
    return f"{module} in the install stage"


def _other_stage(role: Path, module: str, given: Any, tags: tuple[str, ...]) -> str:  # noqa: ANN401
    if module in PACKAGES or (module in IMPORTS and given == COMMON[1]):
        return f"{module} installs outside of the install stage"
    if module in {"command", "shell"} and INSTALLS.search(_words(given)):
        return f"{module} installs outside of the install stage"
    stage = given.get("tasks_from", "main") if isinstance(given, dict) else given
    if module in IMPORTS and str(stage).removesuffix(".yml") == "install":
        if not module.startswith("import_"):
            return "includes the install stage: tags do not reach into what is included"
        if INSTALL_TAG not in tags and role.name != FOR_ALL:
            return f"imports the install stage without the tag {INSTALL_TAG}"
    return ""


def _words(given: Any) -> str:  # noqa: ANN401
    if isinstance(given, str):
        return given
    return " ".join(given.get("argv", [])) or str(given.get("cmd", ""))


def _imports_install(role: Path) -> bool:
    return ("import_tasks", "install.yml") in [action(t) for t in tasks(role / "tasks/main.yml")]


@pytest.mark.parametrize("role", ROLES, ids=lambda path: path.name)
def test_the_stages_of_a_role_are_not_mixed(role: Path) -> None:
    assert problems(role) == []


@pytest.mark.parametrize("role", INSTALLING, ids=lambda path: path.name)
def test_the_role_packages_knows_every_role_that_installs(role: Path) -> None:
    known = (content_dir() / "roles/packages/vars/main.yml").read_text()
    assert role.name == FOR_ALL or re.search(rf"\b{role.name}\b", known)


MIXED = {
    "install.yml": """
- name: Install packages
  ansible.builtin.import_tasks: ../../common/tasks/packages.yml
- name: Configure
  ansible.builtin.template: {src: a.j2, dest: /etc/a, mode: "0644"}
- name: In a block
  block:
    - name: Run
      daemon: {name: a}
""",
    "configure.yml": """
- name: Late
  ansible.builtin.apt: {name: a}
- name: Later
  ansible.builtin.command: {argv: [apt-get, --yes, install, a]}
- name: Latest
  ansible.builtin.include_tasks: ../../common/tasks/packages.yml
- name: Fine
  ansible.builtin.command: {argv: [systemctl, daemon-reload]}
""",
    "main.yml": """
- name: Untagged
  ansible.builtin.import_tasks: install.yml
- name: Of another role
  ansible.builtin.include_role: {name: slurmd, tasks_from: install}
  tags: [install]
- name: Configure
  ansible.builtin.import_tasks: configure.yml
""",
}


def test_a_role_that_mixes_its_stages_is_caught(tmp_path: Path) -> None:
    folder = tmp_path / "mixed" / "tasks"
    folder.mkdir(parents=True)
    for name, text in MIXED.items():
        (folder / name).write_text(text)
    found = problems(tmp_path / "mixed")
    assert [line.split(": ")[1] for line in found] == [
        *("Late", "Later", "Latest", "Configure", "Run", "Untagged", "Of another role"),
    ]


def test_an_install_stage_that_nothing_imports_is_caught(tmp_path: Path) -> None:
    folder = tmp_path / "alone" / "tasks"
    folder.mkdir(parents=True)
    (folder / "install.yml").write_text("[]")
    (folder / "main.yml").write_text("[]")
    assert problems(tmp_path / "alone") == ["alone/tasks/main.yml: does not import install.yml"]
