from pathlib import Path

import pytest

from hpcsite.deploy.events import (
    NOTE_TASKS,
    Diff,
    Finished,
    HostEvent,
    Output,
    PlayStarted,
    TaskStarted,
    parse_event,
    plain_text,
)
from hpcsite.errors import Location
from hpcsite.paths import content_dir

TASK = {"task": "Start slurmd", "task_path": "/c/roles/slurmd/tasks/run.yml:7", "host": "gpu01"}
WHERE = Location(Path("/c/roles/slurmd/tasks/run.yml"), 7)


def test_a_play_names_its_layer() -> None:
    raw = {"event": "playbook_on_play_start", "event_data": {"name": "scheduler: slurmd: run"}}
    assert parse_event(raw) == [PlayStarted("scheduler", "slurmd: run")]


def test_a_task_names_its_file_and_line() -> None:
    raw = {"event": "playbook_on_task_start", "event_data": {"name": "slurmd : Start", **TASK}}
    assert parse_event(raw) == [TaskStarted("slurmd : Start", WHERE)]


@pytest.mark.parametrize(
    ("kind", "result", "status"),
    [
        ("runner_on_ok", {"changed": False}, "ok"),
        ("runner_on_ok", {"changed": True}, "changed"),
        ("runner_on_skipped", {}, "skipped"),
        ("runner_on_failed", {"changed": True, "msg": "no"}, "failed"),
        ("runner_on_unreachable", {"msg": "no"}, "unreachable"),
    ],
)
def test_a_result_says_how_a_task_ended(kind: str, result: dict[str, object], status: str) -> None:
    (event,) = parse_event({"event": kind, "event_data": {**TASK, "res": result}})
    assert isinstance(event, HostEvent)
    assert (event.host, event.status, event.task, event.where) == (
        *("gpu01", status, "Start slurmd"),
        WHERE,
    )
    assert event.message == ("no" if status in {"failed", "unreachable"} else "")


def test_an_ignored_failure_is_marked() -> None:
    data = {**TASK, "res": {"msg": "no"}, "ignore_errors": True}
    (event,) = parse_event({"event": "runner_on_failed", "event_data": data})
    assert isinstance(event, HostEvent)
    assert event.ignored


def test_the_end_counts_every_host() -> None:
    data = {"processed": {"a": 1, "b": 1}, "ok": {"a": 3}, "changed": {"a": 1}, "dark": {"b": 1}}
    (event,) = parse_event({"event": "playbook_on_stats", "event_data": data})
    assert isinstance(event, Finished)
    assert (event.hosts["a"].ok, event.hosts["a"].changed, event.hosts["b"].unreachable) == (
        3,
        1,
        1,
    )


def test_output_loses_colours_and_carriage_returns() -> None:
    raw = {"event": "verbose", "stdout": "\x1b[0;32mok: [head]\x1b[0m\r\n"}
    assert parse_event(raw) == [Output("ok: [head]\n")]
    assert plain_text("a\rb\x1b[2K\x1b[1;31mc") == "a\nbc"


def test_a_diff_is_output_and_names_its_host() -> None:
    raw = {"event": "runner_on_file_diff", "stdout": "--- a\r\n+++ b\r\n", "event_data": TASK}
    assert parse_event(raw) == [Output("--- a\n+++ b\n"), Diff("gpu01", "--- a\n+++ b")]


def test_what_is_unknown_is_ignored() -> None:
    assert parse_event({"event": "EOF"}) == []
    assert parse_event({}) == []


@pytest.mark.parametrize("task", NOTE_TASKS)
def test_a_note_is_a_message_of_a_task_that_went_well(task: str) -> None:
    roles = (content_dir() / "roles").glob("*/tasks/*.yml")
    assert any(f"- name: {task}\n" in role.read_text("utf-8") for role in roles)
    data = {"host": "head", "task": f"slurmctld : {task}", "res": {"msg": "gpu02 is left out"}}
    (event,) = parse_event({"event": "runner_on_ok", "event_data": data})
    assert isinstance(event, HostEvent)
    assert event.message == "gpu02 is left out"
