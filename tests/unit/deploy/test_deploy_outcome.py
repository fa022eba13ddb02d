import json
import re
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hpcsite.deploy.changes import group_changes
from hpcsite.deploy.deploy import PLAYBOOK
from hpcsite.deploy.events import (
    Finished,
    HostCounts,
    HostEvent,
    Output,
    PlayStarted,
    TaskStarted,
    play_of,
)
from hpcsite.deploy.failures import group_failures
from hpcsite.deploy.outcome import (
    Outcome,
    ended_early,
    summaries,
    untouched,
    verdict,
)
from hpcsite.deploy.plays import last_play
from hpcsite.deploy.recap import recap
from hpcsite.deploy.tally import HOMES_TASK, Tally
from hpcsite.errors import ExitCode, Location
from hpcsite.paths import content_dir
from hpcsite.site.ansible import ansible_environment

TallyOf = Callable[[str], Tally]
CRITICAL = frozenset({"head"})
LAST = PlayStarted("scheduler", "slurmd")  # of the recorded events


def outcome_of(
    tally: Tally, *, code: int = 2, check: bool = False, last: PlayStarted = LAST
) -> Outcome:
    judged = verdict(tally, code=code, critical=CRITICAL, interrupted=False)
    return Outcome(
        site="trial",
        inventory=Path("/inventory/trial"),
        status=judged.status,
        exit_code=judged.exit_code,
        reason=judged.reason,
        started=datetime(2026, 11, 30, tzinfo=UTC),
        duration_s=7.3,
        check=check,
        limit=None,
        layers=tuple(tally.layers),
        hosts=summaries(tally),
        changes=group_changes(tally),
        failures=group_failures(tally),
        untouched=untouched(tally),
        ended_early=ended_early(tally, last),
        run_dir=Path("/state/run"),
        log=Path("/state/run/ansible.log"),
    )


def clean(changed: int = 0) -> Tally:
    tally = Tally()
    counts = HostCounts(ok=9, changed=changed)
    tally.add(Finished({"head": counts, "gpu01": counts, "gpu02": counts}))
    return tally


def test_a_clean_run_is_ok() -> None:
    assert verdict(clean(), code=0, critical=CRITICAL, interrupted=False).exit_code == ExitCode.OK


def test_broken_nodes_fail_and_the_rest_is_deployed(tally_of: TallyOf) -> None:
    outcome = outcome_of(tally_of("failures"))
    assert (outcome.status, outcome.exit_code) == ("failed", 1)
    assert [failure.nodes for failure in outcome.failures] == ["gpu01", "gpu02"]
    assert outcome.failures[0].message == "gpu01 has 8 GPUs, 9 are declared"
    text = recap(outcome, folder=Path("/content")).plain
    assert "gpu01 failed in scheduler: Assert\n  playbooks/trial.yml:43\n" in text
    assert "left out: gpu[01-02]; the other nodes are deployed" in text
    assert "--limit 'gpu[01-02]'" in text
    assert "/state/run/ansible.log" in text


def test_nodes_are_not_called_deployed_when_the_run_ended_early(tally_of: TallyOf) -> None:
    outcome = outcome_of(tally_of("failures"), last=PlayStarted("scheduler", "login nodes"))
    text = recap(outcome, folder=Path("/")).plain
    assert "the other nodes are not finished: the run ended in scheduler: slurmd" in text
    assert "are deployed" not in text
    assert "--limit" not in text


def test_nodes_of_a_check_are_not_called_deployed(tally_of: TallyOf) -> None:
    text = recap(outcome_of(tally_of("failures"), check=True), folder=Path("/")).plain
    assert "left out: gpu[01-02]; the other nodes are checked" in text


def test_a_run_that_ansible_gave_no_account_of_ended_early() -> None:
    tally = Tally()
    assert ended_early(tally, LAST) == "before the first task"
    tally.add(LAST)
    assert ended_early(tally, LAST) == "in scheduler: slurmd"
    tally.add(Finished({}))
    assert ended_early(tally, LAST) == ""


def test_the_last_play_is_the_last_that_ansible_would_begin() -> None:
    listed = subprocess.run(
        ["ansible-playbook", "-i", "localhost,", "--list-tasks", content_dir() / PLAYBOOK],
        env=ansible_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    plays = re.findall(r"play #\d+ \(.*?\): (.*?)\s*TAGS:", listed.stdout)
    assert last_play(content_dir() / PLAYBOOK) == play_of(plays[-1])


def test_an_unreachable_controller_means_that_nothing_could_run(tally_of: TallyOf) -> None:
    outcome = outcome_of(tally_of("controller_unreachable"), code=4)
    assert (outcome.status, outcome.exit_code) == ("could-not-run", 4)
    assert outcome.untouched == ("gpu01", "gpu02", "login")
    assert {host.name for host in outcome.hosts if host.failed} == set()
    text = recap(outcome, folder=Path("/")).plain
    assert "head cannot be reached in preflight" in text
    assert "No route to host" in text
    assert "not touched: gpu[01-02],login" in text
    assert "left out" not in text


@pytest.mark.parametrize("hosts", [("head",), ("gpu01", "gpu02", "head")])
def test_home_folders_that_were_left_out_leave_out_no_node(hosts: tuple[str, ...]) -> None:
    """Not even where the host is one that the site hangs on, or there is no other."""
    tally = Tally()
    tally.add(LAST)
    for host in hosts:
        tally.add(HostEvent(host, "failed", HOMES_TASK, None, "alice: /home/alice/.ssh is a link"))
    counts = {
        host: HostCounts(ok=9, failed=int(host in hosts)) for host in ("gpu01", "gpu02", "head")
    }
    tally.add(Finished(counts))
    outcome = outcome_of(tally)
    assert (outcome.status, outcome.exit_code, outcome.reason) == ("failed", 1, "")
    text = recap(outcome, folder=Path("/")).plain
    assert "  alice: /home/alice/.ssh is a link\n" in text
    assert "left out:" not in text
    assert "hint: when the cause is gone: hpcsite deploy /inventory/trial\n" in text


def test_a_failed_controller_is_a_failure(tally_of: TallyOf) -> None:
    outcome = outcome_of(tally_of("controller_failed"))
    assert (outcome.status, outcome.exit_code) == ("failed", 1)
    assert outcome.reason == "stopped: head failed, and the whole site hangs on it"


def test_nodes_with_the_same_fault_are_told_once() -> None:
    tally = Tally()
    tally.add(PlayStarted("base", "all"))
    where = Location(Path("/r/main.yml"), 3)
    for host in ("gpu02", "gpu01"):
        message = f"ssh: connect to host {host}: timed out"
        tally.add(HostEvent(host, "unreachable", "Gather", where, message))
    down = HostCounts(unreachable=1)
    tally.add(Finished({"head": HostCounts(ok=1), "gpu01": down, "gpu02": down}))
    (failure,) = group_failures(tally)
    assert (failure.nodes, failure.hosts) == ("gpu[01-02]", ("gpu01", "gpu02"))


def broken(*messages: tuple[str, str]) -> Tally:
    """Hosts that failed in one task, each with its message."""
    tally = Tally()
    tally.add(LAST)
    for host, message in messages:
        tally.add(HostEvent(host, "failed", "Hold", None, message))
    counts = {host: HostCounts(failed=1) for host, _ in messages}
    tally.add(Finished({"head": HostCounts(ok=1), **counts}))
    return tally


def test_messages_that_differ_by_the_name_are_said_for_the_set() -> None:
    # n1 is the beginning of n10.
    tally = broken(*((host, f"{host} breaks its contract") for host in ("n2", "n1", "n10")))
    (failure,) = group_failures(tally)
    assert failure.message == "n[1-2,10] breaks its contract"


def test_messages_that_differ_by_more_are_each_shown() -> None:
    tally = broken(("n1", "n1 has 7 GPUs"), ("n2", "n2 has 6 GPUs"))
    assert [f.message for f in group_failures(tally)] == ["n1 has 7 GPUs", "n2 has 6 GPUs"]


def test_a_cause_that_names_addresses_is_said_for_the_set_with_one_hint() -> None:
    tally = Tally()
    tally.add(LAST)
    for host, address in (("n1", "10.0.0.1"), ("n2", "10.0.0.2")):
        said, hint = f"no key for root@{address}", f"scan {address}"
        tally.add(HostEvent(host, "unreachable", "Look", None, said, hint=hint, address=address))
    tally.add(Finished({host: HostCounts(unreachable=1) for host in ("n1", "n2")}))
    (failure,) = group_failures(tally)
    assert failure.message == "no key for root@10.0.0.[1-2]"
    assert failure.hint == "scan 10.0.0.1; likewise for the others"


def test_the_recap_says_a_hint_once_and_caps_failures() -> None:
    tally = broken(*((f"n{number}", f"has {number} GPUs") for number in range(1, 15)))
    outcome = outcome_of(tally)
    failures = tuple(f.model_copy(update={"hint": "mend it"}) for f in outcome.failures)
    text = recap(outcome.model_copy(update={"failures": failures}), folder=Path("/")).plain
    assert text.count("hint: mend it\n") == 1
    assert "has 10 GPUs" in text
    assert "has 11 GPUs" not in text
    assert "… and 4 more failures, on n[11-14]: see the log" in text


@pytest.mark.parametrize(("check", "words"), [(False, "changed:"), (True, "would change:")])
def test_the_recap_lists_what_changed(check: bool, words: str) -> None:
    tally = Tally()
    tally.add(PlayStarted("base", "all"))
    for host in ("gpu01", "gpu02"):
        tally.add(HostEvent(host, "changed", "Keep users", None, items=tuple("abcdefg")))
    for number in range(40):
        tally.add(HostEvent("head", "changed", f"Do {number}", None))
    tally.add(Finished({"head": HostCounts(ok=40, changed=40)}))
    outcome = outcome_of(tally, code=0, check=check)
    text = recap(outcome, folder=Path("/")).plain
    lines = f"{words}\n  base: Keep users: a, b, c, d, e and 2 more (gpu[01-02])\n"
    assert text.startswith(f"{lines}  base: Do 0 (head)\n")
    assert "  base: Do 28 (head)\n  … and 11 more, see the log\n" in text
    assert json.loads(outcome.model_dump_json())["changes"][0]["items"] == list("abcdefg")


def test_a_run_that_did_nothing_is_no_success() -> None:
    tally = Tally()
    tally.add(Output("[ERROR]: the playbook could not be found\n"))
    judged = verdict(tally, code=0, critical=CRITICAL, interrupted=False)
    assert judged.exit_code == ExitCode.COULD_NOT_RUN
    assert "the playbook could not be found" in judged.reason


def test_a_run_in_which_no_host_was_matched_is_no_success() -> None:
    tally = Tally()
    tally.add(Finished({}))
    judged = verdict(tally, code=0, critical=CRITICAL, interrupted=False)
    assert judged.exit_code == ExitCode.COULD_NOT_RUN


def test_an_exit_code_without_a_failed_host_is_no_success() -> None:
    judged = verdict(clean(), code=250, critical=CRITICAL, interrupted=False)
    assert judged.exit_code == ExitCode.COULD_NOT_RUN


def test_no_host_left_is_no_partial_success() -> None:
    tally = Tally()
    tally.add(PlayStarted("preflight", "hosts"))
    tally.add(HostEvent("gpu01", "unreachable", "Gather", None, "no"))
    tally.add(Finished({"gpu01": HostCounts(unreachable=1)}))
    judged = verdict(tally, code=4, critical=CRITICAL, interrupted=False)
    assert judged.exit_code == ExitCode.COULD_NOT_RUN


def test_an_interrupted_run_says_where() -> None:
    tally = Tally()
    tally.add(PlayStarted("scheduler", "slurmd"))
    tally.add(TaskStarted("slurmd : Start it", None))
    judged = verdict(tally, code=99, critical=CRITICAL, interrupted=True)
    assert judged.exit_code == ExitCode.INTERRUPTED
    assert judged.reason == "in scheduler: slurmd, task “slurmd : Start it”"


@pytest.mark.parametrize(
    ("changed", "check", "words"),
    [
        (0, False, "deployed in 7 s, nothing changed"),
        (1, False, "3 tasks changed on gpu[01-02],head"),
        (0, True, "checked, nothing was changed in 7 s, nothing would change"),
        (1, True, "3 tasks would change on gpu[01-02],head"),
    ],
)
def test_the_recap_says_what_changed(changed: int, check: bool, words: str) -> None:
    text = recap(outcome_of(clean(changed), code=0, check=check), folder=Path("/")).plain
    assert words in text
    assert f"gpu[01-02],head  ok=9    changed={changed}" in text


def test_the_json_holds_the_whole_outcome(tally_of: TallyOf) -> None:
    data = json.loads(outcome_of(tally_of("failures")).model_dump_json())
    assert data["schema_version"] == 1
    assert data["failures"][0]["hosts"] == ["gpu01"]
