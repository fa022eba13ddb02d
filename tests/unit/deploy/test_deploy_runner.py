"""Ansible runs for real, on this computer and without touching it."""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hpcsite.deploy.events import Event, Finished, HostEvent, Output, PlayStarted, TaskStarted
from hpcsite.deploy.runner import Playbook

PLAYBOOK = """
- name: "base: trial"
  hosts: all
  gather_facts: false
  tasks:
    - name: Hide
      ansible.builtin.command: echo {{ secret }}
      no_log: true
      changed_when: true
    - name: Fail
      ansible.builtin.command: sh -c "echo broken >&2; exit 3"
      when: inventory_hostname == 'b'
    - name: Wait
      ansible.builtin.command: sleep {{ nap }}
      changed_when: false
"""
INVENTORY = """
all:
  vars: {ansible_connection: local, ansible_python_interpreter: "{{ ansible_playbook_python }}"}
  hosts: {a: , b: }
"""
SECRET = "s3cr3t-in-a-variable"

Make = Callable[..., tuple[Playbook, list[Event]]]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def playbook(*, nap: int = 0, **options: object) -> tuple[Playbook, list[Event]]:
        folder = tmp_path / "a folder"
        folder.mkdir()
        (folder / "trial.yml").write_text(PLAYBOOK)
        (folder / "hosts.yml").write_text(INVENTORY)
        (folder / "vars.yml").write_text(f"{{secret: {SECRET}, nap: {nap}}}")
        events: list[Event] = []
        arguments = {"arguments": ("--extra-vars", f"@{folder / 'vars.yml'}"), **options}
        return (
            Playbook(
                playbook=folder / "trial.yml",
                inventory=folder / "hosts.yml",
                work=folder / "work",
                lock=folder / "lock",
                strategy="linear",
                on_event=events.append,
                **arguments,  # type: ignore[arg-type]
            ),
            events,
        )

    return playbook


def of(kind: type, events: list[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, kind)]


def test_a_run_tells_its_events_and_leaves_nothing(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", SECRET)
    monkeypatch.setenv("ANSIBLE_STDOUT_CALLBACK", "no_such_callback")
    monkeypatch.setenv("ANSIBLE_FORCE_COLOR", "1")
    playbook, events = make()
    seen: list[list[str]] = []
    keep = playbook.on_event

    def look(event: Event) -> None:
        keep(event)
        files = [path for path in playbook.work.rglob("*") if path.is_file()]
        seen.append([path.name for path in files if SECRET.encode() in path.read_bytes()])

    playbook.on_event = look
    assert playbook.run() == 2
    assert of(PlayStarted, events) == [PlayStarted("base", "trial")]
    failed = [event for event in of(HostEvent, events) if getattr(event, "status", "") == "failed"]
    (failure,) = failed
    assert isinstance(failure, HostEvent)
    assert (failure.host, failure.task, failure.message) == ("b", "Fail", "exit code 3: broken")
    assert failure.where is not None
    assert failure.where.line == 10
    (finished,) = of(Finished, events)
    assert isinstance(finished, Finished)
    assert finished.hosts["a"].changed == 1
    assert finished.hosts["b"].failed == 1
    text = "".join(event.text for event in events if isinstance(event, Output))
    assert "TASK [Fail]" in text
    assert "\x1b" not in text
    assert SECRET not in text
    assert seen
    assert not any(seen)
    assert not playbook.work.exists()
    assert os.environ["ANSIBLE_STDOUT_CALLBACK"] == "no_such_callback"


def test_limit_and_check_are_passed_on(make: Make) -> None:
    playbook, events = make(limit="a", arguments=("--check", "-e", "secret=x", "-e", "nap=0"))
    assert playbook.run() == 0
    (finished,) = of(Finished, events)
    assert isinstance(finished, Finished)
    assert set(finished.hosts) == {"a"}
    assert finished.hosts["a"].skipped == 3  # a command is skipped in check mode


def test_a_stop_ends_the_run(make: Make) -> None:
    playbook, events = make(nap=300)
    keep = playbook.on_event

    def stop_in_the_last_task(event: Event) -> None:
        keep(event)
        if isinstance(event, TaskStarted) and event.name == "Wait":
            threading.Timer(0.5, playbook.stop).start()

    playbook.on_event = stop_in_the_last_task
    assert playbook.run() != 0
    assert not of(Finished, events)
    assert not playbook.work.exists()


def test_a_playbook_that_is_missing_is_no_success(make: Make) -> None:
    playbook, events = make()
    playbook.playbook = playbook.playbook.with_name("missing.yml")
    assert playbook.run() != 0
    assert any("missing.yml" in event.text for event in events if isinstance(event, Output))


def test_an_error_of_our_own_ends_ansible_too(make: Make) -> None:
    playbook, _ = make(nap=300)
    guards: list[int] = []

    def fail(event: Event) -> None:
        if isinstance(event, TaskStarted) and event.name == "Wait":
            guards.append(int((playbook.work / "guard.pid").read_text()))
            raise ValueError

    playbook.on_event = fail
    with pytest.raises(ValueError):
        playbook.run()
    # It is our child, and gone once it can be waited for.
    signal.alarm(30)
    try:
        os.waitpid(guards[0], 0)
    except ChildProcessError:
        pass
    finally:
        signal.alarm(0)
    assert not Path(f"/proc/{guards[0]}").exists()
