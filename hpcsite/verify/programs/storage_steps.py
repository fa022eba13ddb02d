"""What `storage_agent` can do to shared folders. Sent to nodes with it: it stands alone too."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = os.environ.get("SLURMD_NODENAME") or next(iter(sys.argv[1:]), "")
POLL_S = 0.05
# A small file is a few questions to the server, one after the other: several go on at once.
THREADS = 8


def since(begin: float) -> float:
    """Return milliseconds since then."""
    return round((time.monotonic() - begin) * 1000, 3)


def neighbours(request: dict[str, Any]) -> dict[str, str]:
    """Return this host and those beside it, in the ring of those that take part."""
    ring = request["ring"]
    at = ring.index(NAME)
    return {"prev": ring[at - 1], "next": ring[(at + 1) % len(ring)], "own": NAME}


def place(request: dict[str, Any], word: str = "file") -> Path:
    """Path of a file in the work folder; `{own}`, `{prev}` and `{next}` stand for hosts."""
    return Path(request["folder"], str(request[word]).format(**neighbours(request)))


def content(seed: str, size: int) -> bytes:
    """Bytes that follow from their seed, different at each place."""
    return hashlib.shake_128(seed.encode()).digest(size)


def mounts(request: dict[str, Any]) -> dict[str, Any]:
    """Tell how a folder is mounted, how soon it answers, and where the user may write on it."""
    path, user = Path(request["path"]), request["user"]
    begin = time.monotonic()
    found = os.statvfs(path)
    said: dict[str, Any] = {"stat_ms": since(begin), "mount": mount_of(path), "tried": {}}
    said["below"] = mount_of(*[path.resolve(), *path.resolve().parents])
    said["blocks"] = [found.f_frsize, found.f_blocks, found.f_bavail, found.f_files]
    home = Path(f"~{user}").expanduser()
    for folder in [*([home] if path in home.parents else []), path / user, path]:
        probe = folder / "{}-{}".format(request["probe"], NAME)
        try:
            probe.mkdir(0o700)
            probe.rmdir()
        except OSError as error:
            said["tried"][str(folder)] = [error.errno, error.strerror]
        else:
            said["writable"] = str(folder)
            break
    return said


def mount_of(*paths: Path) -> dict[str, str] | None:
    """Read what the kernel has mounted there; the last one covers the others (proc(5)).

    Of several paths, the first that is a mount counts.
    """
    wanted = [str(path.resolve()) for path in paths]
    found: dict[str, dict[str, str]] = {}
    for line in Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines():
        left, _, right = line.partition(" - ")
        words, more = left.split(" "), right.split(" ")
        if unescaped(words[4]) in wanted and more[0] != "autofs":
            keys = ("type", "source", "options")
            said = {"flags": words[5], **dict(zip(keys, map(unescaped, more)))}  # noqa: B905 - 3.8
            found[unescaped(words[4])] = said
    return next((found[path] for path in wanted if path in found), None)


def unescaped(text: str) -> str:
    """Read a word of mountinfo, where blanks are written in octal."""
    return text.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")


def make(request: dict[str, Any]) -> dict[str, Any]:
    """Make the work folder."""
    Path(request["folder"]).mkdir(0o700)
    return {}


def put(request: dict[str, Any]) -> dict[str, Any]:
    """Write a file, or its end, or over it, and close it: then others must see it (nfs(5))."""
    data = content(request["seed"] + NAME, request["size"])
    path, begin = place(request), time.monotonic()
    with path.open({"new": "xb", "over": "r+b", "append": "ab"}[request["how"]]) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return {"ms": since(begin), "bytes": len(data)}


def get(request: dict[str, Any]) -> dict[str, Any]:
    """Open and read a file of another host, until it is right."""
    author = neighbours(request)[request["author"]]
    right = b"".join(content(seed + author, size) for seed, size in request["parts"])
    right_sum = hashlib.sha256(right).digest()

    def look() -> str:
        try:
            data = place(request).read_bytes()
        except OSError as error:
            return error.strerror or str(error)
        return "" if hashlib.sha256(data).digest() == right_sum else wrong(data, right)

    return {"author": author, **until_right(look, request["within_ms"])}


def gone(request: dict[str, Any]) -> dict[str, Any]:
    """Open a file of another host that is no more, until that is seen."""

    def look() -> str:
        try:
            with place(request).open("rb"):
                return "it can still be opened"
        except OSError as error:
            # A stale handle is what a client has of a file that another one deleted.
            if error.errno not in (errno.ENOENT, errno.ESTALE):
                raise
        return ""

    author = neighbours(request)[request["author"]]
    return {"author": author, **until_right(look, request["within_ms"])}


def until_right(look: Callable[[], str], within_ms: float) -> dict[str, Any]:
    """Look until nothing is wrong: how soon, what was wrong first, what was so to the end."""
    said: dict[str, Any] = {"tries": 0}
    begin = time.monotonic()
    while True:
        said["tries"] += 1
        fault = look()
        said["ms"] = since(begin)
        if not fault:
            return said
        said.setdefault("first", fault)
        if said["ms"] > within_ms:
            return {**said, "never": fault}
        time.sleep(POLL_S)


def wrong(data: bytes, right: bytes) -> str:
    """Tell how what was read differs from what was written."""
    if len(data) != len(right):
        return f"it has {len(data)} bytes, not {len(right)}"
    at = next(i for i in range(len(right)) if data[i] != right[i])
    return f"its content differs from byte {at} on"


def move(request: dict[str, Any]) -> dict[str, Any]:
    """Rename an own file."""
    place(request).rename(place(request, "to"))
    return {}


def drop(request: dict[str, Any]) -> dict[str, Any]:
    """Delete an own file."""
    place(request).unlink()
    return {}


def lock(file: IO[bytes], kind: str, how: int) -> None:
    """Take a lock of one of both kinds; they are apart on a local file system."""
    (fcntl.lockf if kind == "fcntl" else fcntl.flock)(file, how)


def attempt(request: dict[str, Any]) -> dict[str, Any]:
    """Ask for a lock that another host may hold: at once, or as soon as it is free."""
    with place(request).open("r+b") as file:

        def look() -> str:
            try:
                lock(file, request["kind"], fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return "locked"
            return ""

        author = neighbours(request)[request["author"]]
        return {"author": author, **until_right(look, request["within_ms"])}


def fill(request: dict[str, Any]) -> dict[str, Any]:
    """Make many small files in many folders, as many as the time allows."""
    begin, total, folders = time.monotonic(), hashlib.sha256(), request["folders"]
    for number in range(folders):
        (place(request) / f"{number:03d}").mkdir(parents=True)

    def one(number: int) -> bytes:
        if time.monotonic() - begin > request["seconds"]:
            return b""
        data = content(f"{number}", 64 + number % request["size"])
        path = place(request) / f"{number % folders:03d}" / f"{number:06d}"
        path.write_bytes(data)
        return path.name.encode() + hashlib.sha256(data).digest()

    with ThreadPoolExecutor(THREADS) as pool:
        made = [said for said in pool.map(one, range(request["count"])) if said]
    for said in sorted(made):
        total.update(said)
    return {"count": len(made), "ms": since(begin), "sum": total.hexdigest()}


def survey(request: dict[str, Any]) -> dict[str, Any]:
    """Find and read all files that `fill` made."""
    begin, total = time.monotonic(), hashlib.sha256()
    paths = [path for folder in place(request).iterdir() for path in folder.iterdir()]

    def one(path: Path) -> bytes:
        if time.monotonic() - begin > request["seconds"]:
            return b""
        return path.name.encode() + hashlib.sha256(path.read_bytes()).digest()

    with ThreadPoolExecutor(THREADS) as pool:
        found = sorted(pool.map(one, paths))
    for said in found:
        total.update(said)
    if b"" in found:
        read = sum(1 for said in found if said)
        return {"count": read, "ms": since(begin), "unfinished": True}
    return {"count": len(found), "ms": since(begin), "sum": total.hexdigest()}


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Run a program in the work folder; what it printed."""
    words = [word.format(name=NAME) for word in request["argv"]]
    folder = request["folder"]
    try:
        done = subprocess.run(
            words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    except FileNotFoundError:
        return {"missing": words[0]}
    out, err = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
    return {"rc": done.returncode, "stdout": out, "stderr": err}


ACTIONS = (mounts, make, put, get, gone, move, drop, attempt, fill, survey, run)
OPERATIONS = {action.__name__: action for action in ACTIONS}
