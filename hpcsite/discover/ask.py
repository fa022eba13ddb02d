"""Running the probe on many hosts over ssh: bounded in number and time, nothing asked."""

import contextlib
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from hpcsite.discover.facts import Facts
from hpcsite.discover.parse import parse
from hpcsite.errors import CouldNotRunError, UsageError
from hpcsite.site.connection import UnusableVariableError, argv_of

_AT_ONCE = 32
# The vendor's tool may take half a minute to wake the GPUs; it is bounded by itself (probe.sh).
_WITHIN_S = 90
_END_S = 5


@dataclass(frozen=True)
class Ssh:
    """How ssh logs in: as the inventory will say it, so that what reached a host does so again."""

    user: str = ""
    args: str = ""

    def argv(self, target: str) -> list[str]:
        """Make the command line; raises `UsageError` for options that cannot be read."""
        variables = {
            "ansible_host": target,
            "ansible_user": self.user,
            "ansible_ssh_common_args": self.args,
        }
        try:
            return argv_of(Path(), target, variables)
        except UnusableVariableError as error:
            raise UsageError(f"--ssh-args {error}", hint=error.hint) from error


@dataclass(frozen=True)
class Refusal:
    """A host of which nothing is known, and why."""

    target: str
    reason: str


Asked = Facts | Refusal


def probe() -> str:
    """Give the program that hosts run."""
    return files("hpcsite.discover").joinpath("probe.sh").read_text(encoding="utf-8")


def ask_all(targets: Sequence[str], ssh: Ssh) -> list[Asked]:
    """Ask all hosts, some at a time; the answers are in the order of the hosts."""
    program = probe()
    argvs = [ssh.argv(target) for target in targets]
    # Ctrl-C ends each ssh too: they are in the terminal's group of processes.
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(lambda target, argv: ask(target, argv, program), targets, argvs))


def ask(target: str, argv: list[str], program: str, within_s: float = _WITHIN_S) -> Asked:
    """Ask one host. The program goes to a POSIX shell's input: a login shell may be any."""
    try:
        process = subprocess.Popen(
            [*argv, "sh"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
    except FileNotFoundError as error:
        raise CouldNotRunError(
            "ssh is not installed", hint="install the package openssh-client"
        ) from error
    try:
        output, complaint = process.communicate(program, timeout=within_s)
    except subprocess.TimeoutExpired:
        _end(process)
        return Refusal(target, f"no answer within {within_s:.0f} s")
    facts = parse(target, output)
    if facts is not None:
        return facts
    said = [line.strip() for line in complaint.splitlines() if line.strip()]
    return Refusal(target, said[-1] if said else f"its answer broke off ({process.returncode})")


def _end(process: "subprocess.Popen[str]") -> None:
    """End ssh gently first: it then ends the ssh to a jump host that it started."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=_END_S)
        return
    process.kill()
    process.communicate()
