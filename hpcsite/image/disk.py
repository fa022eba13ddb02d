"""Room on file systems, and what they refuse."""

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hpcsite.errors import CouldNotRunError

_MIB = 1 << 20
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


def require_space(path: Path, mebibytes: int, purpose: str) -> None:
    """Check the free space of a path's file system (MiB = 2^20 bytes).

    Raises:
        CouldNotRunError: there is less.
    """
    existing = next(folder for folder in (path, *path.parents) if folder.exists())
    free = shutil.disk_usage(existing).free // _MIB
    if free < mebibytes:
        raise CouldNotRunError(
            f"{path}: {free} MiB free, {mebibytes} MiB are needed {purpose}",
            hint="make room there, or set HPCSITE_STATE_DIR and HPCSITE_CACHE_DIR to folders on "
            "a file system that has it",
        )


@contextmanager
def disk_errors() -> Iterator[None]:
    """Turn what a file system refuses into an error that a user can act on."""
    try:
        yield
    except OSError as error:
        if error.errno not in _DISK_ERRORS:
            raise
        raise CouldNotRunError(
            f"{error.filename or 'writing'}: {error.strerror}",
            hint="make room on the file systems of HPCSITE_STATE_DIR and HPCSITE_CACHE_DIR, and "
            "see that they are writable; then run the same command again",
        ) from error
