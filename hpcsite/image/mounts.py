"""Overlay mounts, and what is mounted."""

import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from hpcsite.errors import CouldNotRunError
from hpcsite.image import tools

_BUSY_SECONDS = 3.0
_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Mount:
    """One line of /proc/<pid>/mountinfo."""

    point: Path
    type: str
    options: str


def parse_mountinfo(text: str) -> list[Mount]:
    """Read /proc/<pid>/mountinfo (proc_pid_mountinfo(5)), in the order of mounting."""
    mounts = []
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        fields, rest = before.split(), after.split(maxsplit=2)
        if len(fields) < 6 or len(rest) < 3:
            continue
        point = _OCTAL.sub(lambda match: chr(int(match[1], 8)), fields[4])
        mounts.append(Mount(Path(point), rest[0], rest[2]))
    return mounts


def mounted() -> list[Mount]:
    """Return what is mounted in this process's mount namespace."""
    return parse_mountinfo(Path("/proc/self/mountinfo").read_text(encoding="utf-8"))


def is_mounted(point: Path) -> bool:
    """Tell whether something is mounted at exactly this folder."""
    return any(mount.point == point for mount in mounted())


def filesystem_type(path: Path) -> str:
    """Return the type of the file system that a path lies on, e.g. `ext4`."""
    existing = path.resolve()
    best = max(
        (mount for mount in mounted() if existing.is_relative_to(mount.point)),
        key=lambda mount: len(mount.point.parts),
    )
    return best.type


def mount_overlay(*, lower: Path, upper: Path, work: Path, point: Path) -> None:
    """Mount a writable layer over a read-only one; a mount that is already there is kept.

    Raises:
        CouldNotRunError: the kernel refuses, e.g. because the upper layer's file system cannot
            hold one.
    """
    if is_mounted(point):
        return
    for folder in (upper, work, point):
        folder.mkdir(parents=True, exist_ok=True)
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    done = tools.attempt(["mount", "-t", "overlay", "overlay", "-o", options, str(point)])
    if done.returncode != 0:
        raise CouldNotRunError(
            f"cannot mount an overlay at {point}: {done.stderr.strip()} "
            f"(the file system there is {filesystem_type(upper)})",
            hint="keep the machines on a local ext4, xfs or btrfs file system: set "
            "HPCSITE_STATE_DIR to a folder on one",
        )


def mount_tmpfs(point: Path) -> None:
    """Mount a small file system in memory that may hold device files, if there is none."""
    point.mkdir(exist_ok=True)
    if not is_mounted(point):
        options = "size=64k,mode=755,nosuid"
        tools.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(point)])


def remove_tree(folder: Path) -> None:
    """Remove a folder and what is mounted in it, while its last users are just ending."""
    deadline = time.monotonic() + _BUSY_SECONDS
    while folder.exists():
        unmount_below(folder)
        try:
            shutil.rmtree(folder)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def unmount_below(folder: Path) -> None:
    """Unmount everything at or below a folder, the last mounted first.

    A mount that stays busy (its last user is just ending) is detached after three seconds.
    """
    deadline = time.monotonic() + _BUSY_SECONDS
    while points := [mount.point for mount in mounted() if mount.point.is_relative_to(folder)]:
        point = str(points[-1])
        if tools.attempt(["umount", point]).returncode == 0:
            continue
        if time.monotonic() > deadline:
            tools.run(["umount", "--lazy", point])
        time.sleep(0.05)
