import json
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from filelock import FileLock

from hpcsite.errors import CouldNotRunError
from hpcsite.site.model import Host
from hpcsite.verify import runner, store
from hpcsite.verify.measure import scontrol_show
from hpcsite.verify.owner import read_owner
from hpcsite.verify.transport import Answer, Identity
from tests.unit.verify.fakeslurm import NOW, FakeSlurm, context_for, fixture, make_site

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


def queued(*jobs: tuple[int, str, int]) -> str:
    """A queue of jobs: their id, comment and age."""
    made = [{"job_id": i, "comment": c, "submit_time": NOW - age} for i, c, age in jobs]
    return f"{NOW}\n" + json.dumps({"jobs": made})


def test_jobs_of_a_killed_run_are_cancelled_first(slurm: Connected) -> None:
    runner.run_suites(make_site(), ["smoke"])
    (line,) = [line for line in slurm.asked if "--wrap=true" in line]
    comment = next(w for w in shlex.split(line) if w.startswith("--comment=")).partition("=")[2]
    slurm.answers["squeue --me --json"] = queued((7, comment, 3), (8, "mine", 9000), (9, "", 9000))
    slurm.answers["scancel --quiet 7"] = ""
    runner.run_suites(make_site(), ["smoke"])
    assert "scancel --quiet 7" in slurm.asked


ANOTHERS = "hpcsite run=20261129-1 origin=0123 lasts=270 by=carol on admin2"


def test_a_run_from_another_computer_is_left_alone_and_named(slurm: Connected) -> None:
    slurm.answers["squeue --me --json"] = queued((7, ANOTHERS, 270), (8, ANOTHERS, 900))
    with pytest.raises(CouldNotRunError, match="by carol on admin2, run 20261129-1") as raised:
        runner.run_suites(make_site(), ["smoke"])
    assert "scancel --name=hpcsite-20261129-1` as alice" in raised.value.hint
    assert not [line for line in slurm.asked if line.startswith("scancel --quiet 7")]
    assert not [line for line in slurm.asked if line.startswith("sbatch")]


def test_jobs_older_than_their_run_can_be_are_left_over(slurm: Connected) -> None:
    slurm.answers["squeue --me --json"] = queued((7, ANOTHERS, 271))
    slurm.answers["scancel --quiet 7"] = ""
    runner.run_suites(make_site(), ["smoke"])
    assert "scancel --quiet 7" in slurm.asked


def test_every_job_says_how_old_it_can_get(tmp_path: Path) -> None:
    context = context_for(tmp_path, FakeSlurm(), wait_s=100.0)
    flags = context.job_flags(None, minutes=5)
    comment = next(flag for flag in flags if flag.startswith("--comment=")).partition("=")[2]
    owner = read_owner(comment)
    assert owner
    assert owner.lasts_s >= 100 + 5 * 60


def test_a_slurm_too_old_is_named(slurm: Connected) -> None:
    slurm.answers["squeue --me --json"] = (1, "", "squeue: unrecognized option '--json'\n")
    with pytest.raises(CouldNotRunError, match="unrecognized option") as raised:
        runner.run_suites(make_site(), ["smoke"])
    assert "22.05 and newer" in raised.value.hint
    assert raised.value.exit_code == 4
    slurm.answers["show nodes"] = "NODELIST NODES\n"
    with pytest.raises(CouldNotRunError, match=r"Slurm 24\.11\.5 cannot be read") as raised:
        runner.run_suites(make_site(), ["smoke"])
    assert "22.05 and newer" in raised.value.hint


def test_a_scontrol_without_json_is_asked_for_text(tmp_path: Path) -> None:
    scontrol = tmp_path / "scontrol"
    scontrol.write_text('#!/bin/sh\ncase "$*" in *--json) exit 1;; esac\necho "$*"\n')
    scontrol.chmod(0o755)
    argv = scontrol_show("nodes", ["gpu01", "gpu02"])
    env = {"PATH": f"{tmp_path}:/bin:/usr/bin"}
    said = subprocess.run(argv, env=env, capture_output=True, text=True, check=True).stdout
    assert said == "show nodes gpu[01-02] --oneliner\n"


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
        if "partitions" in argv:
            raise KeyboardInterrupt
        return real(host, argv, user=user, timeout_s=timeout_s)

    slurm.run = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        runner.run_suites(make_site(), ["smoke"])
    slurm.run = real  # type: ignore[method-assign]
    assert runner.run_suites(make_site(), ["smoke"]).exit_code == 0
