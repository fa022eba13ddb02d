"""Which site was handled last, so that `hpcsite verify` needs no argument."""

import json
import os
import tempfile
from pathlib import Path

from hpcsite.errors import CouldNotRunError
from hpcsite.paths import state_dir
from hpcsite.site.model import Site

_FILE = "last-site.json"
_HINT = "name the inventory folder, e.g. `hpcsite verify inventory/lab`"


def remember_site(site: Site) -> None:
    """Record a site as the one handled last; raises `CouldNotRunError`."""
    folder = state_dir()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=_FILE)
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump({"name": site.name, "path": str(site.path)}, stream)
        Path(temporary).replace(folder / _FILE)
    except OSError as error:
        raise CouldNotRunError(
            f"cannot write to {folder}: {error.strerror}",
            hint="set HPCSITE_STATE_DIR to a folder that you may write to",
        ) from error


def last_site_path() -> Path:
    """Inventory folder of the site handled last; raises `CouldNotRunError` if there is none."""
    record = state_dir() / _FILE
    try:
        path = Path(json.loads(record.read_text(encoding="utf-8"))["path"])
    except FileNotFoundError:
        raise CouldNotRunError("no site was deployed from here yet", hint=_HINT) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CouldNotRunError(
            f"{record} cannot be read: {error}", hint=f"{_HINT}; a deploy writes the record again"
        ) from error
    if not path.is_dir():
        raise CouldNotRunError(f"the site deployed last, {path}, is gone", hint=_HINT)
    return path
