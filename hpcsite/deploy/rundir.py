"""Run folders: what one deploy did, kept 0700 and not for ever."""

import contextlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TextIO

from hpcsite.errors import CouldNotRunError
from hpcsite.paths import site_state_dir

KEPT_RUNS = 50
Kind = Literal["deploy", "plan"]
_WORK = "work"
_SPARE = "spare-secrets"


@dataclass(frozen=True)
class RunDir:
    """Folder of one deploy or plan and the files in it."""

    path: Path

    @property
    def log(self) -> Path:
        """Everything that Ansible printed, without colours."""
        return self.path / "ansible.log"

    @property
    def outcome(self) -> Path:
        """The run's outcome as JSON."""
        return self.path / "outcome.json"

    @property
    def plan(self) -> Path:
        """The plan as JSON, of a run that made one."""
        return self.path / "plan.json"

    @property
    def work(self) -> Path:
        """ansible-runner's own folder; removed when the run ends."""
        return self.path / _WORK

    @property
    def spare_secrets(self) -> Path:
        """Secrets that a check of a fresh site uses instead of the site's own."""
        return self.path / _SPARE

    def open_log(self) -> TextIO:
        """Open the log for adding to it; only its owner may read it."""
        descriptor = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return os.fdopen(descriptor, "w", encoding="utf-8")


def make_run_dir(site_name: str, kind: Kind = "deploy") -> RunDir:
    """Make the folder of a new run, point `latest` at it, and remove the oldest runs of its kind.

    `latest` is the newest deploy: a plan leaves it alone, for it changed nothing.

    Raises `CouldNotRunError` when the state folder cannot be written to.
    """
    runs = site_state_dir(site_name) / "runs"
    try:
        runs.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = _fresh(runs, kind)
        if kind == "deploy":
            _point(runs / "latest", path)
        _prune(runs, kind)
    except OSError as error:
        raise CouldNotRunError(
            f"cannot make a run folder in {runs}: {error.strerror or error}",
            hint="set HPCSITE_STATE_DIR to a folder that you may write to",
        ) from error
    return RunDir(path)


def _fresh(runs: Path, kind: Kind) -> Path:
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%SZ")
    count = 1
    while True:
        name = f"{stamp}-{kind}" if count == 1 else f"{stamp}.{count}-{kind}"
        with contextlib.suppress(FileExistsError):
            (runs / name).mkdir(mode=0o700)
            return runs / name
        count += 1


def _point(link: Path, target: Path) -> None:
    """Replace a symbolic link in one step."""
    temporary = Path(tempfile.mktemp(dir=link.parent, prefix=".latest."))  # noqa: S306 - symlink() fails if it exists
    temporary.symlink_to(target.name)
    temporary.replace(link)


def _prune(runs: Path, kind: Kind) -> None:
    # A run that was killed could not tidy up. None is running: its site is locked.
    for left in (_WORK, _SPARE):
        for folder in runs.glob(f"*-{kind}/{left}"):
            shutil.rmtree(folder, ignore_errors=True)
    kept = sorted(entry for entry in runs.glob(f"*-{kind}") if entry.is_dir())
    for old in kept[:-KEPT_RUNS]:
        shutil.rmtree(old, ignore_errors=True)
