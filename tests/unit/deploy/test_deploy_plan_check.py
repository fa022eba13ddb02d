"""Ansible checks for real, on this computer and without touching it, and a plan is made of it."""

import json
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hpcsite.deploy.events import Diff, Event, Output
from hpcsite.deploy.plan.collect import Findings
from hpcsite.deploy.plan.model import (
    AccountChange,
    DaemonChange,
    FileChange,
    Item,
    NodeNeed,
    OtherChange,
    PackageChange,
    Unknown,
)
from hpcsite.deploy.plan.watcher import Watcher
from hpcsite.deploy.runner import Playbook

SECRET = "s3cr3t-of-the-site"
PLAYBOOK = """
- name: "scheduler: trial"
  hosts: all
  gather_facts: false
  vars:
    target: {folder}/host
    missing_state: {{missing: [munge]}}
  tasks:
    - name: Write what is there
      ansible.builtin.copy:
        content: "one\\ntwo\\n"
        dest: "{{{{ target }}}}/{{{{ item }}}}"
        mode: "0644"
      loop: [changes.conf, same.conf, new.conf]
    - name: Write from a template
      ansible.builtin.template:
        src: {folder}/t.j2
        dest: "{{{{ target }}}}/template.conf"
    - name: Write a secret
      ansible.builtin.copy:
        content: "{secret}"
        dest: "{{{{ target }}}}/munge.key"
      no_log: true
      diff: false
    - name: Write a secret without care
      ansible.builtin.copy:
        content: "StoragePass={secret}\\n"
        dest: "{{{{ target }}}}/slurmdbd.conf"
    - name: Write a secret among other lines
      ansible.builtin.copy:
        content: "[mail]\\nnote = {secret}\\nsmtp_password: other-s3cr3t\\n"
        dest: "{{{{ target }}}}/mail.ini"
    - name: Change a mode
      ansible.builtin.file:
        path: "{{{{ target }}}}/same.conf"
        mode: "0600"
    - name: Remove
      ansible.builtin.file:
        path: "{{{{ target }}}}/old.conf"
        state: absent
    - name: Keep users
      ansible.builtin.user:
        name: "{{{{ item.name }}}}"
        uid: 64242
      loop: [{{name: nobodyelse}}]
      loop_control:
        label: "{{{{ item.name }}}}"
    - name: Find the packages to install
      missing_packages:
        names: [no-such-package-there-is]
      register: packages_state
      changed_when: packages_state.missing | length > 0
    - name: Say what a check cannot see
      plan_effect:
        kind: reconfigure
        subject: slurmctld
        because: [/etc/slurm/slurm.conf]
    - name: Say whom to drain
      plan_effect: {{kind: drain, hosts: [gpu01], because: [2 GPUs of 8]}}
    - name: Say that a reboot is needed
      plan_effect: {{kind: reboot, because: [the driver changes]}}
    - name: Wait for packages
      ansible.builtin.command: "false"
      when: not ansible_check_mode or not missing_state.missing
    - name: Look at what runs
      running_state:
    - name: Skip for another reason
      ansible.builtin.command: "false"
      when: not ansible_check_mode
    - name: Run a command that says {secret}
      ansible.builtin.command: "false"
"""


@dataclass
class Checked:
    findings: Findings
    events: list[Event]
    raw: list[dict[str, Any]]
    folder: Path

    def of(self, kind: type[Item], host: str = "a") -> list[Any]:
        return [
            item for name, item in self.findings.changes if isinstance(item, kind) and name == host
        ]

    def file(self, name: str) -> FileChange:
        found: list[FileChange] = [f for f in self.of(FileChange) if f.path.endswith(f"/{name}")]
        assert len(found) == 1, f"{name}: {found}"
        return found[0]


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    folder = tmp_path_factory.mktemp("check")
    for name in ("changes.conf", "same.conf", "old.conf"):
        file = folder / "host" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("one\n2\n" if name == "changes.conf" else "one\ntwo\n", encoding="utf-8")
        file.chmod(0o644)
    (folder / "t.j2").write_text("{{ inventory_hostname }}\n", encoding="utf-8")
    (folder / "secrets").mkdir()
    (folder / "secrets" / "word").write_text(f"{SECRET}\n", encoding="utf-8")
    (folder / "play.yml").write_text(PLAYBOOK.format(folder=folder, secret=SECRET), "utf-8")
    (folder / "hosts.yml").write_text(
        "all:\n  vars: {ansible_connection: local, "
        'ansible_python_interpreter: "{{ ansible_playbook_python }}"}\n  hosts: {a: , b: }\n',
        encoding="utf-8",
    )
    watcher = Watcher()
    events: list[Event] = []
    raw: list[dict[str, Any]] = []
    watcher.learn_secrets(folder / "secrets")

    def on_raw(event: dict[str, Any]) -> None:
        watcher.raw(event)
        raw.append(event)

    Playbook(
        playbook=folder / "play.yml",
        inventory=folder / "hosts.yml",
        work=folder / "work",
        lock=folder / "lock",
        strategy="linear",
        on_event=events.append,
        on_raw=on_raw,
        arguments=("--check", "--diff"),
    ).run()
    return Checked(watcher.findings, events, raw, folder)


def test_a_file_that_changes_comes_with_its_diff(checked: Checked) -> None:
    item = checked.file("changes.conf")
    assert item.change == "content"
    assert item.diff.splitlines() == ["@@ -1,2 +1,2 @@", " one", "-2", "+two"]


def test_a_file_that_is_made_is_named_even_of_a_template(checked: Checked) -> None:
    assert checked.file("new.conf").change == "created"
    assert checked.file("template.conf").change == "created"
    assert checked.file("template.conf").diff.endswith("\n+a")


def test_owner_and_mode_are_told_from_content(checked: Checked) -> None:
    item = checked.file("same.conf")
    assert (item.change, item.diff) == ("attributes", "mode: 0644 → 0600")


def test_a_file_that_is_removed(checked: Checked) -> None:
    assert checked.file("old.conf").change == "removed"


def test_a_task_with_no_log_still_tells_its_file(checked: Checked) -> None:
    item = checked.file("munge.key")
    assert (item.change, item.diff) == ("content", "")
    assert item.note == "secret, not shown"


def test_users_packages_and_what_roles_say_of_themselves(checked: Checked) -> None:
    assert [a.label for a in checked.of(AccountChange)] == ["Keep users: nobodyelse"]
    assert checked.of(PackageChange)[0].packages == ("no-such-package-there-is",)
    daemon = checked.of(DaemonChange)[0]
    assert (daemon.daemon, daemon.action) == ("slurmctld", "reconfigure")
    assert daemon.because == ("/etc/slurm/slurm.conf",)
    assert checked.of(NodeNeed, "gpu01")[0].needs == ("drain",)
    assert checked.findings.reboots["a"] == ["the driver changes"]


def test_what_waits_for_packages_is_unknown_and_other_skips_are_not(checked: Checked) -> None:
    unknown = dict(checked.findings.unknown())
    assert isinstance(unknown["a"], Unknown)
    assert unknown["a"].until == "the packages are installed"
    assert [item.task for item in checked.of(OtherChange)] == ["Run a command that says ********"]


def test_what_the_host_runs_is_read(checked: Checked) -> None:
    assert checked.findings.states["a"].kernel == platform.release()
    assert checked.findings.states["a"].jobs is None


def test_nothing_is_changed(checked: Checked) -> None:
    files = {file.name: file.read_text("utf-8") for file in (checked.folder / "host").iterdir()}
    assert files == {
        "changes.conf": "one\n2\n",
        "same.conf": "one\ntwo\n",
        "old.conf": "one\ntwo\n",
    }


def test_no_secret_is_in_anything_that_is_kept(checked: Checked) -> None:
    """The plan, what goes to the log and to the screen, and what later readers get to see."""
    kept = [item.model_dump_json() for _, item in checked.findings.changes]
    kept += [repr(event) for event in checked.events]
    kept += [json.dumps(event, default=str) for event in checked.raw]
    assert any("mail.ini" in text for text in kept)
    assert [text for text in kept if "s3cr3t" in text] == []
    assert checked.file("mail.ini").diff.count("********") == 2
    assert checked.file("slurmdbd.conf").diff == ""


def test_diffs_are_not_written_to_the_log_a_second_time(checked: Checked) -> None:
    assert not [event for event in checked.events if isinstance(event, Diff)]
    shown = "".join(event.text for event in checked.events if isinstance(event, Output))
    assert "changed: [a]" in shown
    assert "+two" not in shown
