"""One deploy a site at a time, on this computer."""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from hpcsite.errors import CouldNotRunError
from hpcsite.paths import site_state_dir


@contextmanager
def site_lock(site_name: str) -> Iterator[None]:
    """Hold the site's lock; the kernel releases it with the process, however that ends.

    A process may take it again while it has it: a plan that is looked at, and the deploy of it, are
    one thing, between which nobody else deploys.

    Raises `CouldNotRunError`, which names the holder, when another deploy has it.
    """
    folder = site_state_dir(site_name)
    holder = folder / "deploy.holder.json"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = FileLock(folder / "deploy.lock", mode=0o600, is_singleton=True)
        lock.acquire(blocking=False)
    except Timeout:
        raise CouldNotRunError(
            f"another deploy of the site {site_name} is running{_described(holder)}",
            hint="wait for it, or end it with Ctrl-C there",
        ) from None
    except OSError as error:
        raise CouldNotRunError(
            f"cannot lock {folder}: {error.strerror or error}",
            hint="set HPCSITE_STATE_DIR to a folder that you may write to",
        ) from error
    try:
        if lock.lock_counter == 1:
            holder.write_text(json.dumps(_ourselves()), encoding="utf-8")
        yield
        if lock.lock_counter == 1:
            holder.unlink(missing_ok=True)
    finally:
        lock.release()


def _ourselves() -> dict[str, str | int]:
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return {"pid": os.getpid(), "host": socket.gethostname(), "since": now}


def _described(holder: Path) -> str:
    """Who holds the lock, as far as it is known: the holder writes it just after locking."""
    try:
        data = json.loads(holder.read_text(encoding="utf-8"))
        return f": pid {data['pid']} on {data['host']}, since {data['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return ""
