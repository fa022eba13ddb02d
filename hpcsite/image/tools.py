"""Running the host's tools, and saying what is missing."""

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping

from hpcsite.errors import CouldNotRunError

# Tool → Debian package that has it (Ubuntu uses the same names).
PACKAGES = {
    "ip": "iproute2",
    "mcopy": "mtools",
    "mke2fs": "e2fsprogs",
    "mkfs.vfat": "dosfstools",
    "mmdebstrap": "mmdebstrap",
    "mount": "mount",
    "newgidmap": "uidmap",
    "newuidmap": "uidmap",
    "nft": "nftables",
    "qemu-img": "qemu-utils",
    "setpriv": "util-linux",
    "sfdisk": "fdisk",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "systemd-nspawn": "systemd-container",
    "tar": "tar",
    "umount": "mount",
    "unshare": "util-linux",
    "zstd": "zstd",
}
# Root's tools lie outside an ordinary user's PATH on Debian (`su` without `-` keeps that one).
_SYSTEM_PATHS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
_SHOWN_LINES = 20


def search_path() -> str:
    """Return PATH with the system administrator's folders at its end."""
    paths = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join([*paths, *(path for path in _SYSTEM_PATHS if path not in paths)])


def require(names: Iterable[str]) -> None:
    """Check that all of these tools are there.

    Raises:
        CouldNotRunError: names every missing tool at once, and the packages that have them.
    """
    missing = [name for name in names if shutil.which(name, path=search_path()) is None]
    if missing:
        packages = sorted({PACKAGES[name] for name in missing})
        raise CouldNotRunError(
            f"tools that this needs are missing: {', '.join(missing)}",
            hint=f"apt install {' '.join(packages)}",
        )


def run(
    argv: list[str],
    *,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    hint: str = "",
) -> str:
    """Run a tool and return what it printed.

    Raises:
        CouldNotRunError: it is missing, or ended with an error; carries what it said.
    """
    done = attempt(argv, stdin=stdin, env=env)
    if done.returncode != 0:
        said = "\n".join(done.stderr.strip().splitlines()[-_SHOWN_LINES:])
        raise CouldNotRunError(
            f"`{' '.join(argv)}` failed with exit code {done.returncode}:\n{said}", hint=hint
        )
    return done.stdout


def attempt(
    argv: list[str],
    *,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a tool whose failure is an answer, not an error.

    Raises:
        CouldNotRunError: it is missing.
    """
    try:
        return subprocess.run(
            argv,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            env={**os.environ, "LC_ALL": "C.UTF-8", "PATH": search_path(), **(env or {})},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except FileNotFoundError:
        require([argv[0]])
        raise
