import os
import signal
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from hpcsite.errors import UsageError
from hpcsite.verify.claims import Claim, Mode
from hpcsite.verify.context import Context
from hpcsite.verify.engine import Check, run_checks
from hpcsite.verify.findings import Finding, NotMeasuredError
from hpcsite.verify.results import Result, Status
from hpcsite.verify.suites import DEFAULT_SUITES, SUITES, choose
from hpcsite.verify.transport import InterruptedRunError
from tests.unit.verify.fakeslurm import FakeSlurm, context_for


class Heard:
    def __init__(self) -> None:
        self.words: list[str] = []

    def planned(self, checks: Sequence[Check]) -> None:
        self.words.append(f"{len(checks)} planned")

    def started(self, check: Check) -> None:
        self.words.append(f"{check.name} started")

    def finished(self, result: Result) -> None:
        self.words.append(f"{result.check} {result.status}")


def run(folder: Path, *checks: Check) -> tuple[list[Result], bool, list[str]]:
    context = context_for(folder, FakeSlurm())
    heard = Heard()
    results, interrupted = run_checks(context.core, context.cluster, checks, heard)
    return results, interrupted, heard.words


def ok(_: Context) -> Finding:
    return Finding(Status.PASS)


def claim(mode: Mode, *nodes: str) -> Claim:
    return Claim(frozenset(nodes), mode)


def test_results_come_in_order_and_are_told(tmp_path: Path) -> None:
    checks = [Check("s", name, "about", ok) for name in ("one", "two")]
    results, interrupted, heard = run(tmp_path, *checks)
    assert [result.check for result in results] == ["one", "two"]
    assert not interrupted
    assert heard[0] == "2 planned"
    assert sorted(heard[1:]) == ["one PASS", "one started", "two PASS", "two started"]


def test_after_a_failure_later_checks_see_the_nodes_as_they_are(tmp_path: Path) -> None:
    slurm = FakeSlurm()
    context = context_for(tmp_path, slurm)
    seen: list[bool] = []

    def fails(_: Context) -> Finding:
        slurm.nodes = "nodes-drained.json"
        return Finding(Status.FAIL, "gpu02 does not answer")

    def looks(context: Context) -> Finding:
        seen.append(bool(context.cluster.unusable("gpu02")))
        return Finding(Status.PASS)

    def whole(_: Context) -> Claim:
        return claim(Mode.WHOLE, "gpu01")

    order = [("a", looks), ("b", fails), ("c", looks)]
    checks = [Check("s", name, "", run, (), whole) for name, run in order]
    run_checks(context.core, context.cluster, checks, Heard())
    assert seen == [False, True]


def test_a_need_that_is_not_met_skips_without_running(tmp_path: Path) -> None:
    def never(_: Context) -> Finding:
        raise AssertionError

    check = Check("s", "c", "", never, (lambda _: "", lambda _: "no tool x"))
    ((result,), *_) = run(tmp_path, check)
    assert (result.status, result.reason) == ("SKIP", "no tool x")


def test_what_cannot_be_measured_is_an_error(tmp_path: Path) -> None:
    def fails(_: Context) -> Finding:
        raise NotMeasuredError("no answer")

    ((result,), *_) = run(tmp_path, Check("s", "c", "", fails))
    assert (result.status, result.reason) == ("ERROR", "no answer")


def test_a_bug_in_one_check_takes_no_other_result(tmp_path: Path) -> None:
    def broken(_: Context) -> Finding:
        raise KeyError("x")

    (first, second), *_ = run(tmp_path, Check("s", "a", "", broken), Check("s", "b", "", ok))
    assert first.status == "ERROR"
    assert "a bug in hpcsite: KeyError" in first.reason
    (kept,) = first.raw
    assert "Traceback" in (tmp_path / kept).read_text()
    assert second.status == "PASS"


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        (claim(Mode.LIGHT, "a"), claim(Mode.LIGHT, "a"), True),
        (claim(Mode.LIGHT, "a"), claim(Mode.BUSY, "a"), True),
        (claim(Mode.BUSY, "a"), claim(Mode.BUSY, "a"), False),
        (claim(Mode.WHOLE, "a"), claim(Mode.LIGHT, "a"), False),
        (claim(Mode.WHOLE, "a"), claim(Mode.WHOLE, "a"), False),
        (claim(Mode.WHOLE, "a"), claim(Mode.WHOLE, "b"), True),
        (Claim(), claim(Mode.WHOLE, "a"), True),
    ],
)
def test_claims(one: Claim, other: Claim, *, together: bool) -> None:
    assert one.fits([other]) is together
    assert other.fits([one]) is together


def test_a_check_that_needs_a_whole_node_runs_alone_on_it(tmp_path: Path) -> None:
    lock = threading.Lock()
    active: set[str] = set()
    seen: list[frozenset[str]] = []

    def check(name: str, mode: Mode) -> Check:
        def work(_: Context) -> Finding:
            with lock:
                active.add(name)
                seen.append(frozenset(active))
            threading.Event().wait(0.05)
            with lock:
                active.discard(name)
            return Finding(Status.PASS)

        return Check("s", name, "", work, (), lambda _: claim(mode, "gpu01"))

    light = [check(f"light{i}", Mode.LIGHT) for i in range(3)]
    run(tmp_path, light[0], check("whole", Mode.WHOLE), *light[1:])
    assert frozenset({"whole"}) in seen
    assert not [together for together in seen if "whole" in together and len(together) > 1]
    assert any(len(together) > 1 for together in seen)


def test_an_interrupt_ends_all_and_names_what_did_not_finish(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    # A shell's background jobs begin with the signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    begun = threading.Event()

    def waits(context: Context) -> Finding:
        begun.set()
        threading.Timer(0.05, os.kill, [os.getpid(), signal.SIGINT]).start()
        if context.core.stop.wait(10):
            raise InterruptedRunError
        return Finding(Status.PASS)

    def later(mode: Mode) -> Claim:
        return claim(mode, "gpu01")

    results, interrupted, _ = run(
        tmp_path,
        Check("s", "running", "", waits, (), lambda _: later(Mode.WHOLE)),
        Check("s", "waiting", "", ok, (), lambda _: later(Mode.WHOLE)),
    )
    assert interrupted
    assert [(r.status, r.reason) for r in results] == [("ERROR", "interrupted")] * 2


def test_a_shared_value_is_made_once_and_is_evidence_for_all(tmp_path: Path) -> None:
    slurm = FakeSlurm(answers={"hello": "x"})
    context = context_for(tmp_path, slurm)
    views = [
        Context(context.core, context.cluster, type(context.evidence)(tmp_path, name))
        for name in ("one", "two")
    ]
    for view in views:
        assert view.shared("key", lambda c: c.user(["hello"], "hello").stdout) == "x"
    assert slurm.asked == ["hello"]
    assert views[0].evidence.raw == views[1].evidence.raw == ("raw/shared.key/01-hello.txt",)


def test_every_check_has_a_name_of_its_own_and_says_what_it_proves() -> None:
    checks = [check for suite in SUITES.values() for check in suite]
    assert len({check.title for check in checks}) == len(checks)
    for name, suite in SUITES.items():
        for check in suite:
            assert check.suite == name
            assert check.about.endswith(".")


def test_choosing_suites_and_checks() -> None:
    assert {check.suite for check in choose([])} == set(DEFAULT_SUITES)
    assert [check.title for check in choose(["slurm", "slurm"], ["gpu_fill"])] == ["slurm/gpu_fill"]
    assert [check.title for check in choose([], ["node/state"])] == ["node/state"]
    with pytest.raises(UsageError) as error:
        choose(["slurn"])
    assert "did you mean slurm?" in error.value.hint
    with pytest.raises(UsageError) as error:
        choose(["slurm"], ["gpu_fil"])
    assert "did you mean gpu_fill?" in error.value.hint
