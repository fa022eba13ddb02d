import os
import threading
import time
from pathlib import Path

import pytest

from hpcsite.errors import CouldNotRunError
from hpcsite.site.model import Host
from hpcsite.verify.access import find_identity, ordinary_user, read_identity, submit_host
from hpcsite.verify.evidence import Evidence
from hpcsite.verify.transport import (
    Answer,
    Identity,
    InterruptedRunError,
    SshTransport,
    UnreachableError,
)
from tests.unit.verify.fakeslurm import make_site

SSH = """#!/bin/sh
for last; do :; done
case " $* " in *" -O exit "*) echo closed >>"$LOG"; exit 0 ;; esac
exec bash -c "exec $last"
"""
LOGIN = Host(name="login", groups=frozenset({"slurm_login"}), address="login", vars={})


@pytest.fixture
def transport(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def] # noqa: ANN201
    """An SshTransport whose ssh runs the command here."""
    (tmp_path / "ssh").write_text(SSH)
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    me = Identity("alice", str(tmp_path))
    with SshTransport(make_site(), {"alice": me}) as made:
        yield made
    assert (tmp_path / "log").exists()


def test_a_command_comes_back_whole(transport: SshTransport) -> None:
    argv = ["sh", "-c", 'echo "$1" \'*\'; echo "$LC_ALL" >&2; cat; exit 3', "sh", "a  b;$(id)"]
    answer = transport.run(LOGIN, argv, user=None, timeout_s=5)
    assert (answer.rc, answer.stdout, answer.stderr) == (3, "a  b;$(id) *\n", "C\n")
    assert answer.argv == tuple(argv)
    assert not answer.ok


def test_a_user_has_home_and_locale(transport: SshTransport, tmp_path: Path) -> None:
    argv = ["sh", "-c", 'echo "$HOME $USER $LC_ALL $PWD"']
    answer = transport.run(LOGIN, argv, user="alice", timeout_s=5)
    assert answer.stdout == f"{tmp_path} alice C /\n"


def test_a_command_is_bounded_in_time(transport: SshTransport) -> None:
    answer = transport.run(LOGIN, ["sleep", "30"], user=None, timeout_s=1)
    assert answer.rc == 124
    assert answer.complaint == "no answer within 1 s"


def test_a_command_that_must_be_killed_took_too_long_too(transport: SshTransport) -> None:
    argv = ["bash", "-c", "sleep 1; kill -KILL $$"]
    assert transport.run(LOGIN, argv, user=None, timeout_s=1).rc == 124
    assert transport.run(LOGIN, ["bash", "-c", "exit 137"], user=None, timeout_s=5).rc == 137


def test_ssh_itself_failing_is_unreachable(transport: SshTransport) -> None:
    argv = ["sh", "-c", "echo 'ssh: connect: No route to host' >&2; exit 255"]
    with pytest.raises(UnreachableError, match="login: ssh: connect: No route to host"):
        transport.run(LOGIN, argv, user=None, timeout_s=5)


def test_an_interrupt_ends_what_runs_and_refuses_more(transport: SshTransport) -> None:
    threading.Timer(0.3, transport.interrupt).start()
    begin = time.monotonic()
    with pytest.raises(InterruptedRunError):
        transport.run(LOGIN, ["sleep", "30"], user=None, timeout_s=30)
    assert time.monotonic() - begin < 5
    with pytest.raises(InterruptedRunError):
        transport.run(LOGIN, ["true"], user=None, timeout_s=5)
    transport.resume()
    assert transport.run(LOGIN, ["true"], user=None, timeout_s=5).ok


def probe(stdout: str) -> Answer:
    return Answer(("sh",), "login", None, 0, stdout, "", 0.0, 0.0)


PASSWD = "alice:x:2001:2000::/home/alice:/bin/bash\n"


@pytest.mark.parametrize(
    ("said", "become"),
    [
        (f"alice\n{PASSWD}", ()),
        (f"root\n{PASSWD}/usr/sbin/runuser\n/usr/bin/sudo\n", ("runuser", "-u", "alice", "--")),
        (f"root\n{PASSWD}/usr/bin/sudo\n", ("sudo", "-n", "-u", "alice", "--")),
        (f"admin\n{PASSWD}/usr/sbin/runuser\n/usr/bin/sudo\n", ("sudo", "-n", "-u", "alice", "--")),
    ],
)
def test_becoming_the_ordinary_user(said: str, become: tuple[str, ...]) -> None:
    assert read_identity(probe(said), "alice") == Identity("alice", "/home/alice", become)


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("root\n/usr/sbin/runuser\n", "there is no user alice on login"),
        (f"admin\n{PASSWD}/usr/sbin/runuser\n", "admin cannot become alice"),
        ("", "there is no user alice"),
    ],
)
def test_a_user_that_cannot_be_used(said: str, error: str) -> None:
    with pytest.raises(CouldNotRunError, match=error) as raised:
        read_identity(probe(said), "alice")
    assert raised.value.hint


def test_a_host_that_does_not_answer_is_not_one_without_the_user() -> None:
    silent = Answer(("sh",), "login", None, 124, "root\n", "", 0.0, 15.0)
    with pytest.raises(CouldNotRunError, match="no answer within 15 s"):
        read_identity(silent, "alice")


def test_a_submit_host_that_is_silent_has_a_hint(transport: SshTransport) -> None:
    class Silent(SshTransport):
        def run(self, *_: object, **__: object) -> Answer:
            raise UnreachableError("login: timed out")

    with pytest.raises(CouldNotRunError, match="login: timed out") as raised:
        find_identity(Silent(make_site(), {}), LOGIN, "alice")
    assert "ssh" in raised.value.hint
    transport.run(LOGIN, ["true"], user=None, timeout_s=5)


def test_where_jobs_are_submitted_and_by_whom() -> None:
    assert submit_host(make_site()).name == "login"
    assert submit_host(make_site(hosts=("head", "gpu01"))).name == "head"
    with pytest.raises(CouldNotRunError, match="no host to submit jobs from"):
        submit_host(make_site(hosts=("gpu01",)))
    assert ordinary_user(make_site()) == "alice"
    site = make_site()
    nobody = site.model_copy(update={"keys": site.keys.model_copy(update={"verify_user": None})})
    with pytest.raises(CouldNotRunError) as raised:
        ordinary_user(nobody)
    assert "site_verify_user" in raised.value.hint


def test_raw_output_is_kept_with_how_it_was_got(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    evidence = Evidence(tmp_path, "s.c")
    answer = Answer(("sacct", "--jobs=1 2"), "login", "alice", 1, "out", "err", 0.0, 0.5)
    evidence.record(answer, "sacct")
    evidence.replace(answer, "poll")
    evidence.replace(answer, "poll")
    assert evidence.raw == ("raw/s.c/01-sacct.txt", "raw/s.c/poll.txt")
    assert evidence.commands == ("sacct '--jobs=1 2'",)
    text = (tmp_path / evidence.raw[0]).read_text()
    assert "$ sacct '--jobs=1 2'" in text
    assert "on login as alice: exit code 1 after 0.500 s" in text
    assert "out" in text
    assert "err" in text
