"""Slurm's own daemons of a Debian release, in namespaces of their own: no lab, no init system.

A root file system with slurmctld, slurmdbd, MariaDB and munge is built once and cached. `SlurmRoot`
lays an overlay over it and enters it with its own processes, mounts, network and host name; all of
it ends with the shell inside. Needs root.
"""

import os
import platform
import shlex
import subprocess
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from hpcsite.image import roots
from hpcsite.image.aptconf import read_host_apt
from hpcsite.image.recipe import Recipe

PACKAGES = (
    "mariadb-server",
    "munge",
    "slurm-client",
    "slurm-wlm-mysql-plugin",
    "slurmctld",
    "slurmdbd",
)
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# Entered with a folder of its own and the root: makes what a machine's boot would make.
_ENTER = """
set -e
mount --make-rprivate /
mount -t tmpfs none "$1"
mkdir "$1"/upper "$1"/work "$1"/root
mount -t overlay overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" "$1"/root
mount -t proc proc "$1"/root/proc
mount --rbind /dev "$1"/root/dev
mount -t tmpfs none "$1"/root/run
mkdir -p "$1"/root/run/lock
ip link set lo up
cd "$1"/root
exec chroot . /bin/bash
"""


class Said(NamedTuple):
    """What a command in the root did; `text` is stdout and stderr."""

    rc: int
    text: str


def root_of(release: str) -> Path:
    """Return the root file system of a Debian release, built if there is none in the cache."""
    apt = read_host_apt()
    machine = platform.machine()
    sources: tuple[str, ...] = apt.sources(release)
    options = apt.options
    if release not in ("bookworm", "trixie"):
        # A release in the making has no updates yet, and some mirrors of it stand still.
        sources = sources[:1]
        options = (*options, 'Acquire::Check-Valid-Until "false"')
    recipe = Recipe(
        release,
        _ARCHITECTURES.get(machine, machine),
        # Debian 12's plugin for PMIx opens the library by a name that only this one brings.
        (*PACKAGES, *(["libpmix-dev"] if release == "bookworm" else [])),
        sources,
        tuple(dict.fromkeys(options)),
    )
    return roots.ensure(recipe, proxy=apt.proxy, rebuild=False, say=lambda _: None).root


class SlurmRoot:
    """A shell as root in a root file system; a context manager."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def __enter__(self) -> "SlurmRoot":
        self._folder = tempfile.TemporaryDirectory(prefix="slurm-root-")
        argv = [
            *("setpriv", "--pdeathsig", "KILL"),
            *("unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "--kill-child"),
            *("sh", "-c", _ENTER, "enter", self._folder.name, str(self._root)),
        ]
        self._shell = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env={"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": "/root"},
        )
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self._shell.kill()
        self._shell.communicate()
        self._folder.cleanup()

    def run(self, command: str) -> Said:
        """Run a command in bash; what it starts in the background lives on."""
        shell, end = self._shell, f"end-{uuid.uuid4().hex}"
        assert shell.stdin is not None
        assert shell.stdout is not None
        shell.stdin.write(f"( {command}\n) </dev/null 2>&1; rc=$?; echo; echo {end} $rc\n")
        shell.stdin.flush()
        lines: list[str] = []
        for line in shell.stdout:
            if line.startswith(end):
                return Said(int(line.split()[1]), "".join(lines).rstrip("\n"))
            lines.append(line)
        raise AssertionError(f"the shell in {self._root} ended: {''.join(lines)}")

    def ok(self, command: str) -> str:
        """Run a command that must succeed, and return what it said."""
        said = self.run(command)
        assert said.rc == 0, f"{command}: {said.text}"
        return said.text

    def write(self, files: Mapping[str, str], *, owner: str = "root", mode: str = "0644") -> None:
        """Write files by their paths in the root."""
        for path, text in files.items():
            name = shlex.quote(path)
            self.ok(
                f'mkdir -p "$(dirname {name})"; printf %s {shlex.quote(text)} >{name} && '
                f"chown {owner} {name} && chmod {mode} {name}"
            )

    def wait(self, command: str, seconds: int = 60) -> None:
        """Wait until a command succeeds."""
        self.ok(f"for _ in $(seq {seconds * 2}); do ({command}) && exit 0; sleep 0.5; done; exit 1")
