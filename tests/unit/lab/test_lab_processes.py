"""Only the process that is meant is signalled."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from hpcsite.lab import processes


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as process:
        # It has no command line while the kernel loads it.
        while not processes.command_line(process.pid):
            time.sleep(0.01)
        yield process
        process.kill()


def test_a_process_that_is_not_the_one_meant_is_left_alone(
    sleeper: subprocess.Popen[bytes],
) -> None:
    assert processes.end(sleeper.pid, signal.SIGKILL, lambda _: False, seconds=5)
    assert sleeper.poll() is None


def test_the_one_meant_ends(sleeper: subprocess.Popen[bytes]) -> None:
    def is_it(pid: int) -> bool:
        return processes.command_line(pid) == ["sleep", "60"]

    assert processes.end(sleeper.pid, signal.SIGTERM, is_it, seconds=5)
    assert sleeper.wait(5) == -signal.SIGTERM


def test_another_program_with_the_argument_is_no_supervisor(
    sleeper: subprocess.Popen[bytes],
) -> None:
    assert processes.supervisor("60") is None


def test_parent_and_children(sleeper: subprocess.Popen[bytes]) -> None:
    assert processes.parent(sleeper.pid) == os.getpid()
    assert sleeper.pid in processes.children(os.getpid())
