"""Files that appear as a whole or not at all, and one command at a time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from hpcsite.errors import CouldNotRunError
from hpcsite.paths import cache_dir

_LOCK_SECONDS = 600


def write_atomically(path: Path, text: str, mode: int = 0o644) -> None:
    """Put a file in place as a whole or not at all; replaces a link instead of following it."""
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    part.touch(mode=mode)
    part.chmod(mode)
    part.write_text(text, encoding="utf-8")
    part.replace(path)


@contextmanager
def lock(name: str, say: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold one of the locks that images and labs need; waits up to ten minutes for another command.

    Locks lie in the cache folder, so that `lab down` need not remove what another command may
    be waiting on.

    Raises:
        CouldNotRunError: the other command did not end.
    """
    folder = cache_dir() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    held = FileLock(folder / f"{name}.lock")
    try:
        held.acquire(blocking=False)
    except Timeout:
        if say:
            say(f"waiting for another hpcsite command ({name})")
        _wait(held, name)
    try:
        yield
    finally:
        held.release()


def _wait(held: FileLock, name: str) -> None:
    try:
        held.acquire(timeout=_LOCK_SECONDS)
    except Timeout as error:
        raise CouldNotRunError(
            f"another hpcsite command holds {held.lock_file} for ten minutes ({name})",
            hint=f"find it with: fuser -v {held.lock_file}",
        ) from error
