"""The guard runs real processes: what it starts, it ends, whatever ends first."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hpcsite.deploy import guard

# Leaves a child in a session of its own, as ansible's workers and ssh's masters do.
STRAY = "import subprocess,time;p=subprocess.Popen(['sleep','300'],start_new_session=True)"


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def until(condition: Callable[[], bool], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


class Guarded:
    """A guard that runs a piece of Python."""

    def __init__(self, folder: Path, code: str) -> None:
        self.work = folder / "work"
        self.work.mkdir(exist_ok=True)
        self.lock = folder / "lock"
        argv = [sys.executable, "-I", "-S", guard.__file__, str(self.lock), str(self.work)]
        self.process = subprocess.Popen(
            [*argv, sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def stop(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Callable[[str], Guarded]]:
    made: list[Guarded] = []

    def make(code: str) -> Guarded:
        made.append(Guarded(tmp_path, code))
        return made[-1]

    yield make
    for one in made:
        one.process.terminate()
        one.process.communicate(timeout=20)


def test_it_returns_the_commands_exit_code_and_tidies_up(
    guarded: Callable[[str], Guarded],
) -> None:
    one = guarded("import sys; sys.exit(7)")
    (one.work / "tmp").mkdir()
    assert one.process.wait(20) == 7
    assert list(one.work.iterdir()) == []


def test_strays_end_with_the_command(guarded: Callable[[str], Guarded]) -> None:
    one = guarded(f"{STRAY};print(p.pid,flush=True)")
    stray = int(one.line())
    assert one.process.wait(20) == 0
    assert not alive(stray)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_asks_as_ctrl_c_would(
    guarded: Callable[[str], Guarded], number: signal.Signals
) -> None:
    one = guarded(
        f"{STRAY}\ntry: print(p.pid,flush=True);time.sleep(300)\n"
        "except KeyboardInterrupt: raise SystemExit(5)"
    )
    stray = int(one.line())
    one.stop(number)
    assert one.process.wait(20) == 5
    assert not alive(stray)


def test_a_second_signal_kills(guarded: Callable[[str], Guarded]) -> None:
    one = guarded(
        "import signal,time,os;signal.signal(2,signal.SIG_IGN);print(os.getpid(),flush=True);"
        "time.sleep(300)"
    )
    stubborn = int(one.line())
    one.stop()
    time.sleep(0.3)
    assert alive(stubborn)
    started = time.monotonic()
    one.stop()
    assert one.process.wait(20) == 128 + signal.SIGKILL
    assert time.monotonic() - started < guard.GRACE_S / 2
    assert not alive(stubborn)


def test_all_ends_when_the_starter_is_killed(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    argv = [guard.__file__, str(tmp_path / "lock"), str(tmp_path / "work")]
    inner = [sys.executable, "-c", f"{STRAY};print(os.getpid(),p.pid,flush=True);time.sleep(300)"]
    inner[2] = f"import os;{inner[2]}"
    code = f"import subprocess;subprocess.run({[sys.executable, '-I', '-S', *argv, *inner]!r})"
    starter = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    pids = [int(word) for word in starter.stdout.readline().split()]
    assert all(alive(pid) for pid in pids)
    starter.kill()
    starter.wait(20)
    starter.stdout.close()
    assert until(lambda: not any(alive(pid) for pid in pids))


def test_two_runs_never_overlap(guarded: Callable[[str], Guarded]) -> None:
    first = guarded("print('first',flush=True);import time;time.sleep(300)")
    assert first.line() == "first"
    second = guarded("print('second',flush=True)")
    time.sleep(0.5)
    assert second.process.poll() is None
    first.stop()
    assert second.line() == "second"
    assert first.process.wait(20) != 0
    assert second.process.wait(20) == 0


def test_waiting_for_an_earlier_run_can_be_ended(guarded: Callable[[str], Guarded]) -> None:
    first = guarded("print('first',flush=True);import time;time.sleep(300)")
    assert first.line() == "first"
    second = guarded("print('second',flush=True)")
    pid_file = second.work / guard.PID_FILE
    assert until(lambda: pid_file.read_text() == str(second.process.pid))
    os.kill(int(pid_file.read_text()), signal.SIGTERM)
    assert second.process.wait(20) == guard.EX_TEMPFAIL
    assert second.line() == ""
    assert not pid_file.exists()


def test_descendants_are_found_through_generations() -> None:
    code = "import subprocess;subprocess.run(['sleep','300'])"
    with subprocess.Popen([sys.executable, "-c", code]) as child:
        assert until(lambda: len(guard.descendants(child.pid)) == 1)
        (sleeper,) = guard.descendants(child.pid)
        assert sleeper in guard.descendants(os.getpid())
        os.kill(sleeper, signal.SIGKILL)
