from collections.abc import Callable
from pathlib import Path

import yaml

from hpcsite.deploy.events import Finished, HostCounts, HostEvent, PlayStarted
from hpcsite.deploy.tally import GATE_TASK, Tally
from hpcsite.paths import content_dir

TallyOf = Callable[[str], Tally]


def event(host: str, status: str, *, task: str = "t", ignored: bool = False) -> HostEvent:
    return HostEvent(host, status, task, None, f"{host} {status}", ignored=ignored)  # type: ignore[arg-type]


def test_failures_are_those_that_ansible_counts(tally_of: TallyOf) -> None:
    tally = tally_of("failures")
    assert {host: failure.layer for host, failure in tally.failures().items()} == {
        "gpu01": "scheduler",
        "gpu02": "scheduler",
    }
    assert list(tally.layers) == ["preflight", "base", "scheduler"]
    assert tally.layers["scheduler"].out == {"gpu01", "gpu02"}


def test_a_rescued_host_is_not_out(tally_of: TallyOf) -> None:
    assert "head" not in tally_of("failures").failures()


def test_a_host_that_fails_in_its_rescue_says_what_the_rescue_found(tally_of: TallyOf) -> None:
    failure = tally_of("controller_failed").failures()["head"]
    assert failure.event.task == "Give up"
    assert failure.event.message == "slurmctld did not start:\nfatal: thing"


def test_without_an_end_a_host_that_went_on_was_rescued() -> None:
    tally = Tally()
    tally.add(PlayStarted("base", "x"))
    for step in (event("a", "failed"), event("b", "failed"), event("a", "ok")):
        tally.add(step)
    assert set(tally.failures()) == {"b"}
    assert tally.out_of(frozenset({"a", "b", "c"})) == {"b"}
    assert tally.host_counts() == {"a": HostCounts(ok=1, failed=1), "b": HostCounts(failed=1)}


def test_an_ignored_failure_does_not_take_a_host_out() -> None:
    tally = Tally()
    tally.add(PlayStarted("base", "x"))
    tally.add(event("a", "failed", ignored=True))
    assert not tally.failures()
    assert not tally.out_of(frozenset({"a"}))


def test_a_failure_that_no_event_told_of_still_counts() -> None:
    tally = Tally()
    tally.add(Finished({"a": HostCounts(failed=1)}))
    assert set(tally.failures()) == {"a"}


def test_the_gate_says_nothing_about_the_host_it_runs_on(tally_of: TallyOf) -> None:
    tally = tally_of("controller_unreachable")
    assert set(tally.failures()) == {"head"}
    assert tally.gate is not None
    assert tally.gate.layer == "preflight"
    assert tally.gate.event.host != "head"


def test_the_gate_has_its_name_in_the_playbooks() -> None:
    tasks = content_dir() / "roles" / "preflight" / "tasks" / "main.yml"
    shared = content_dir() / "playbooks" / "tasks" / "controllers_stand.yml"
    for file in (tasks, shared):
        assert GATE_TASK in _task_names(file)


def _task_names(file: Path) -> list[str]:
    return [task["name"] for task in yaml.safe_load(file.read_text("utf-8"))]
