"""Stored runs: one folder a run, with the run itself and all raw output.

`<state>/sites/<site>/verify/<run id>/` holds `run.json`, what was rendered from it, and `raw/`.
A run's id begins with its start in UTC, so that names sort by age.
"""

import os
import secrets
import tempfile
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from hpcsite.errors import CouldNotRunError
from hpcsite.paths import site_state_dir, state_dir
from hpcsite.verify.results import Run

RUN_FILE = "run.json"


def new_run_id(started: datetime) -> str:
    """Return an id that no other run has, e.g. `20261130-120915-3fa2`."""
    return f"{started:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def make_run_folder(site_name: str, run_id: str) -> Path:
    """Make a run's folder, readable by its owner only; raises `CouldNotRunError`."""
    folder = _folder(site_name, run_id)
    try:
        folder.mkdir(mode=0o700, parents=True)
        (folder / "raw").mkdir(mode=0o700)
    except OSError as error:
        raise CouldNotRunError(
            f"cannot make {folder}: {error.strerror}",
            hint="set HPCSITE_STATE_DIR to a folder that you may write to",
        ) from error
    return folder


def folder_of(run: Run) -> Path:
    """Where a run of this computer is stored."""
    return _folder(run.site, run.run_id)


def save(folder: Path, run: Run) -> Path:
    """Write a run as JSON, whole or not at all."""
    return save_text(folder / RUN_FILE, run.model_dump_json(indent=2) + "\n")


def save_text(path: Path, text: str) -> Path:
    """Write a file, whole or not at all; raises `CouldNotRunError`."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        Path(temporary).replace(path)
    except OSError as error:
        raise CouldNotRunError(
            f"cannot write {path}: {error.strerror}",
            hint="name a file in a folder that exists, has room and that you may write to",
        ) from error
    return path


def load(folder: Path) -> Run:
    """Read a stored run; raises `CouldNotRunError` for one that cannot be read."""
    file = folder / RUN_FILE
    try:
        return Run.model_validate_json(file.read_bytes())
    except OSError as error:
        raise CouldNotRunError(
            f"{file} cannot be read: {error.strerror}",
            hint="a run that was killed leaves no run.json; its raw output is in raw/ beside it",
        ) from error
    except ValidationError as error:
        raise CouldNotRunError(
            f"{file} is not a run of this version of hpcsite: {error.error_count()} differences",
            hint="show it with the version of hpcsite that stored it (`hpcsite_version` in it)",
        ) from error


def find(wanted: str | None, site_name: str | None) -> Path:
    """Folder of a stored run: a path, an id or its beginning, or the last one for None.

    Raises `CouldNotRunError` if there is none or more than one.
    """
    if wanted and (Path(wanted) / RUN_FILE).is_file():
        return Path(wanted)
    stored = _stored(site_name)
    matching = [run for run in stored if run.name.startswith(wanted or "")]
    of_site = f" of site {site_name}" if site_name else ""
    if not matching:
        known = ", ".join(run.name for run in stored[-5:])
        raise CouldNotRunError(
            f"no run {wanted}{of_site} is stored" if wanted else f"no run{of_site} is stored yet",
            hint=f"the last ones are {known}" if known else "run `hpcsite verify` first",
        )
    if wanted and len(matching) > 1:
        raise CouldNotRunError(
            f"{wanted} begins the names of {len(matching)} runs",
            hint="write more of it: " + ", ".join(run.name for run in matching[-5:]),
        )
    return matching[-1]


def _stored(site_name: str | None) -> list[Path]:
    pattern = f"sites/{site_name or '*'}/verify/*/{RUN_FILE}"
    return sorted((file.parent for file in state_dir().glob(pattern)), key=lambda run: run.name)


def _folder(site_name: str, run_id: str) -> Path:
    return site_state_dir(site_name) / "verify" / run_id
