import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from filelock import FileLock

from hpcsite.errors import CouldNotRunError
from hpcsite.site.model import Host
from hpcsite.verify import runner, store
from hpcsite.verify.transport import Answer, Identity
from tests.unit.verify.fakeslurm import FakeSlurm, fixture, make_site

PROBE = "root\nalice:x:2001:2000::/home/alice:/bin/bash\n/usr/sbin/runuser\n"


class Connected(FakeSlurm):
    """The fake in the place of SshTransport."""

    def __enter__(self) -> "Connected":
        return self

    def __exit__(self, *_: object) -> None:
        self.asked.append("closed")


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Connected:
    monkeypatch.setenv("HPCSITE_STATE_DIR", str(tmp_path))
    made = Connected(
        answers={
            "getent": PROBE,
            "show config": fixture("config.txt"),
            "show partitions": fixture("partitions.json"),
        }
    )
    identities: dict[str, Identity] = {}

    def connect(_: object, known: dict[str, Identity]) -> Connected:
        identities.update(known)
        return made

    monkeypatch.setattr(runner, "SshTransport", connect)
    return made


def test_a_run_is_stored_with_its_raw_output(slurm: Connected) -> None:
    run = runner.run_suites(make_site(), ["smoke"])
    folder = store.folder_of(run)
    assert run.exit_code == 0, run.results
    assert store.load(folder) == run
    assert (run.user, run.submit_host, run.suites) == ("alice", "login", ("smoke",))
    for result in run.results:
        assert result.commands
        for path in result.raw:
            assert (folder / path).is_file()


def test_the_last_thing_is_to_cancel_by_name(slurm: Connected) -> None:
    run = runner.run_suites(make_site(), ["smoke"])
    cancel, closed = slurm.asked[-2:]
    assert cancel == f"scancel --quiet --me --name=hpcsite-{run.run_id}"
    assert closed == "closed"


def test_jobs_of_a_killed_run_are_cancelled_first(slurm: Connected) -> None:
    slurm.answers["squeue --me --json"] = json.dumps(
        {
            "jobs": [
                {"job_id": 7, "name": "hpcsite-20261129-1"},
                {"job_id": 8, "name": "mine"},
            ]
        }
    )
    slurm.answers["scancel --quiet 7"] = ""
    runner.run_suites(make_site(), ["smoke"])
    assert "scancel --quiet 7" in slurm.asked
    assert not [line for line in slurm.asked if line.endswith(" 8")]


def test_a_controller_that_is_down_is_said_at_once(slurm: Connected) -> None:
    slurm.answers["show nodes"] = (1, "", "scontrol: error: Unable to contact slurm controller\n")
    with pytest.raises(CouldNotRunError, match="Slurm does not answer on login") as raised:
        runner.run_suites(make_site(), ["smoke"])
    assert "slurmctld` on `head" in raised.value.hint


def test_a_second_run_is_told_who_runs(slurm: Connected, tmp_path: Path) -> None:
    folder = tmp_path / "sites" / "lab"
    folder.mkdir(parents=True)
    holder = {"user": "root", "host": "admin", "pid": 42, "since": "2026-11-30 12:00:00 UTC"}
    (folder / "verify.holder").write_text(json.dumps(holder))
    with FileLock(folder / "verify.lock"):
        with pytest.raises(CouldNotRunError, match="by root on admin, process 42, since") as raised:
            runner.run_suites(make_site(), ["smoke"])
        assert raised.value.hint
    assert slurm.asked == []
    runner.run_suites(make_site(), ["smoke"])


def test_an_interrupt_while_jobs_run_leaves_none(slurm: Connected) -> None:
    real = slurm.run

    def interrupted(
        host: Host, argv: Sequence[str], *, user: str | None, timeout_s: float
    ) -> Answer:
        if argv[0] == "scontrol" and "partitions" in argv:
            raise KeyboardInterrupt
        return real(host, argv, user=user, timeout_s=timeout_s)

    slurm.run = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        runner.run_suites(make_site(), ["smoke"])
    slurm.run = real  # type: ignore[method-assign]
    assert runner.run_suites(make_site(), ["smoke"]).exit_code == 0
