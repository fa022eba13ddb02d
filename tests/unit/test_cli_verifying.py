"""What deploy and verify share: how a verification is ended, and how deploy tells of it."""

import json
import os
import signal
import time
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from hpcsite.cli import deploy as deploy_command
from hpcsite.cli.verifying import Verdicts, ended_like_interrupt
from hpcsite.deploy.outcome import Outcome
from hpcsite.errors import CouldNotRunError
from hpcsite.site.model import Site, SiteKeys
from hpcsite.verify.results import Result, Status

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.mark.parametrize("first", SIGNALS)
def test_a_second_signal_does_not_cut_the_clean_up_short(first: signal.Signals) -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    cleaned = []

    @ended_like_interrupt()
    def run() -> None:
        try:
            os.kill(os.getpid(), first)
            time.sleep(5)
        finally:
            for number in (signal.SIGTERM, signal.SIGHUP):
                os.kill(os.getpid(), number)
            time.sleep(0.05)
            cleaned.append(True)

    with pytest.raises(KeyboardInterrupt):
        run()
    assert cleaned
    assert [signal.getsignal(number) for number in SIGNALS] == before


def outcome() -> Outcome:
    return Outcome(
        site="trial",
        inventory=Path("/trial"),
        status="ok",
        exit_code=0,
        reason="",
        started=datetime(2026, 11, 30, tzinfo=UTC),
        duration_s=1.0,
        check=False,
        limit=None,
        layers=(),
        hosts=(),
        failures=(),
        untouched=(),
        ended_early="",
        run_dir=Path("/run"),
        log=Path("/run/log"),
    )


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (CouldNotRunError("Slurm does not answer on head"), "Slurm does not answer on head"),
        (KeyboardInterrupt(), "interrupted"),
    ],
)
def test_json_is_printed_when_the_verification_cannot_run(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, told: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    site = Site(path=Path("/trial"), keys=SiteKeys(name="trial", verify_user="alice"), hosts={})
    monkeypatch.setattr(deploy_command, "load_site", lambda _: site)
    monkeypatch.setattr(deploy_command, "deploy", lambda *_: outcome())
    monkeypatch.setattr(deploy_command, "run_suites", fail)
    done = CliRunner().invoke(deploy_command.command, ["/trial", "--json"], standalone_mode=False)
    data = json.loads(done.stdout)
    assert (data["exit_code"], data["verification"]) == (0, None)
    assert data["verification_error"] == told
    # click turns a Ctrl-C into its Abort, which ends in 130 too.
    assert isinstance(done.exception, type(error) | click.Abort)


def test_the_reason_that_checks_share_is_told_once() -> None:
    verdicts = Verdicts()
    down = Result(suite="node", check="state", status=Status.FAIL, reason="gpu02 is DOWN")
    assert verdicts.line(down) == "FAIL  node/state (0.0 s): gpu02 is DOWN"
    for check in ("answers", "clocks"):
        result = Result(suite="node", check=check, status=Status.ERROR, reason="gpu02 is DOWN")
        assert verdicts.line(result) == f"ERROR node/{check} (0.0 s): as node/state"
    well = Result(suite="mpi", check="a", status=Status.PASS)
    assert [verdicts.line(well) for _ in range(2)] == ["PASS  mpi/a (0.0 s)"] * 2
