"""Archives that the Linux kernel unpacks as an initial file system: cpio's `newc` format.

The kernel takes several archives one after the other, compressed or not, as long as each begins
at a multiple of 4 bytes (Documentation/driver-api/early-userspace/buffer-format.rst).
"""

import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

_MAGIC = b"070701"
_TRAILER = "TRAILER!!!"
_ALIGNMENT = 4
# Old and always the same: equal files make equal archives, and nothing looks younger than the
# services that read it.
_MODIFIED = 1


@dataclass(frozen=True)
class File:
    """A regular file of root's."""

    path: str  # relative to the archive's top
    data: bytes
    mode: int = 0o644


def archive(files: Iterable[File], folder_modes: dict[str, int]) -> bytes:
    """Return an archive of files and of the folders that they are in.

    Folders have mode 0755 where `folder_modes` says nothing else.
    """
    entries: dict[str, tuple[int, bytes]] = {}
    for file in files:
        path = PurePosixPath(file.path)
        if path.is_absolute() or ".." in path.parts:
            raise ValueError(f"{file.path} leads out of the archive")
        for folder in reversed([str(each) for each in path.parents if each.parts]):
            entries[folder] = (stat.S_IFDIR | folder_modes.get(folder, 0o755), b"")
        entries[str(path)] = (stat.S_IFREG | file.mode, file.data)
    members = [
        _member(number, name, mode, data)
        for number, (name, (mode, data)) in enumerate(entries.items(), start=1)
    ]
    return b"".join([*members, _member(0, _TRAILER, 0, b"")])


def joined(*archives: bytes) -> bytes:
    """Return archives as one initial file system; what comes later adds to what was before."""
    return b"".join(_padded(each) for each in archives)


def _member(number: int, name: str, mode: int, data: bytes) -> bytes:
    links = 2 if stat.S_ISDIR(mode) else 1
    encoded = name.encode() + b"\0"
    fields = (
        *(number, mode, 0, 0, links, _MODIFIED, len(data)),
        *(0, 0, 0, 0),  # the device that it lay on, and the one that it is
        *(len(encoded), 0),
    )
    header = _MAGIC + b"".join(b"%08x" % field for field in fields)
    return _padded(header + encoded) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % _ALIGNMENT)
