"""A site's secrets: made once, kept beside its inventory, readable by their owner only.

They are the truth about the site, but not every folder has them: git ignores them, so a fresh
clone has none. What is made here stays only when a host has got it (see `Change.undo`).
"""

import contextlib
import hashlib
import os
import secrets
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hpcsite.errors import CouldNotRunError

MUNGE_KEY = "munge.key"
SLURMDBD_PASSWORD = "slurmdbd_password"  # noqa: S105 - a file's name
# munged(8) asks for 32 to 1024 bytes and makes 128 itself.
MUNGE_KEY_BYTES = 128
# 256 bits, in characters that need no quoting in any configuration file.
PASSWORD_BYTES = 32
# Variables by which the roles find the files.
SECRET_VARIABLES = {MUNGE_KEY: "munge_key_file", SLURMDBD_PASSWORD: "slurmdbd_password_file"}
FOLDER_MODE = 0o700
FILE_MODE = 0o600
# What rotation keeps of the key before, until the next rotation.
OLD_SUFFIX = ".old"


@dataclass(frozen=True)
class Change:
    """Secrets that were made, and the key that one of them replaced."""

    made: tuple[Path, ...] = ()
    old_key: Path | None = None

    def undo(self) -> None:
        """Leave the folder as it was: no host has these secrets."""
        for path in self.made:
            path.unlink(missing_ok=True)
        if self.old_key:
            self.old_key.replace(self.old_key.with_name(MUNGE_KEY))
        for folder in {path.parent for path in self.made}:
            with contextlib.suppress(OSError):  # not empty
                folder.rmdir()


def ensure_secrets(folder: Path) -> list[Path]:
    """Make the secrets that a folder lacks, and return the files made; never overwrites one.

    Raises `CouldNotRunError` for a folder or file that others may read or that is not ours, and
    for an empty file: which secret is the true one, only a person can tell.
    """
    try:
        folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
        _check_private(folder, FOLDER_MODE)
        return [
            *_ensure(folder / MUNGE_KEY, secrets.token_bytes(MUNGE_KEY_BYTES)),
            *_ensure(folder / SLURMDBD_PASSWORD, _password()),
        ]
    except OSError as error:
        raise _unusable(folder, error) from error


def rotate_munge_key(folder: Path) -> Change:
    """Put the munge key aside and make a new one, and the other secrets if they are missing."""
    key, old = folder / MUNGE_KEY, folder / f"{MUNGE_KEY}{OLD_SUFFIX}"
    change = Change()
    try:
        if key.exists():
            key.replace(old)
            change = Change((), old)
        return Change(tuple(ensure_secrets(folder)), change.old_key)
    except OSError as error:
        change.undo()
        raise _unusable(folder, error) from error
    except CouldNotRunError:
        change.undo()
        raise


def sha256_of(key: Path) -> str:
    """SHA-256 in hexadecimal digits: tells random keys apart and gives none away."""
    try:
        return hashlib.sha256(key.read_bytes()).hexdigest()
    except OSError as error:
        raise _unusable(key.parent, error) from error


def missing_secrets(folder: Path) -> list[str]:
    """Names of the secrets that a folder lacks; looks only. Raises `CouldNotRunError`."""
    try:
        return [name for name in SECRET_VARIABLES if not (folder / name).exists()]
    except OSError as error:
        raise _unusable(folder, error) from error


def _unusable(folder: Path, error: OSError) -> CouldNotRunError:
    return CouldNotRunError(
        f"cannot keep the site's secrets in {folder}: {error.strerror or error}",
        hint="the folder must belong to the user who deploys; deploy as the user who did so before",
    )


def _password() -> bytes:
    return f"{secrets.token_urlsafe(PASSWORD_BYTES)}\n".encode()


def _ensure(path: Path, content: bytes) -> list[Path]:
    if path.exists() or path.is_symlink():
        _check_private(path, FILE_MODE)
        if not path.stat().st_size:
            raise CouldNotRunError(
                f"the secret {path} is empty",
                hint="restore it from a backup; on a site that was never deployed, remove it "
                "and deploy makes a new one",
            )
        return []
    # mkstemp makes the file 0600; link() fails where another process was quicker, so that no
    # reader ever sees half a secret and none is replaced.
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.link(temporary, path)
    except FileExistsError:
        return []
    finally:
        Path(temporary).unlink()
    return [path]


def _check_private(path: Path, mode: int) -> None:
    status = path.stat()
    if status.st_uid not in {os.geteuid(), 0}:
        raise CouldNotRunError(
            f"{path} belongs to another user (uid {status.st_uid})",
            hint=f"check where it comes from, then: chown {os.geteuid()} {path}",
        )
    if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise CouldNotRunError(
            f"{path} is open to other users (mode {stat.S_IMODE(status.st_mode):04o})",
            hint=f"chmod {mode:04o} {path}; if others may have read it, make a new secret too: "
            "docs/deploy.md, Secrets",
        )
