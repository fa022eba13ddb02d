"""The cache of Debian packages that image builds and all machines share."""

import os
import shutil
from pathlib import Path

from hpcsite.paths import cache_dir

# Where apt keeps packages, below a machine's root.
ARCHIVES = Path("var/cache/apt/archives")


def packages_dir() -> Path:
    """Folder of the cached `.deb` files."""
    return cache_dir() / "debs"


def harvest(archives: Path) -> int:
    """Move new packages from a folder of apt's into the cache; returns how many.

    Only complete files: apt downloads below `partial/` and renames when a file is whole and its
    hash right.
    """
    cache = packages_dir()
    cache.mkdir(parents=True, exist_ok=True)
    found = 0
    for package in archives.glob("*.deb"):
        target = cache / package.name
        if target.exists() or not package.is_file() or package.is_symlink():
            continue
        _move(package, target)
        found += 1
    return found


def _move(package: Path, target: Path) -> None:
    try:
        package.rename(target)
    except OSError:
        # Another file system, or a full one: a copy appears under its name only when complete.
        part = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            shutil.copyfile(package, part)
            part.rename(target)
        except OSError:
            part.unlink(missing_ok=True)
            return
    target.chmod(0o644)
