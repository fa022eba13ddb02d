"""What a lab keeps on this computer: where, whose, and one command at a time."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from hpcsite.errors import CouldNotRunError
from hpcsite.lab import names
from hpcsite.lab.machine import MachineDir
from hpcsite.paths import cache_dir, state_dir

_LOCK_SECONDS = 600
# Characters with a meaning in the options of an overlay mount.
_UNMOUNTABLE = frozenset(',:\\"')


@dataclass(frozen=True)
class Record:
    """Which inventory a lab was made from; the first thing that `up` writes."""

    name: str
    inventory: str
    network: str


@dataclass(frozen=True)
class LabDirs:
    """The folders of one lab."""

    root: Path
    inventory: Path

    @property
    def record(self) -> Path:
        """The lab's record."""
        return self.root / "lab.json"

    @property
    def machines(self) -> Path:
        """One folder a machine."""
        return self.root / "machines"

    def machine(self, node: str) -> MachineDir:
        """Return the folder of one machine."""
        return MachineDir(self.machines / node, names.machine(self.root.name, node))

    @property
    def host_keys(self) -> Path:
        """The machines' ssh host keys; they outlive a reset."""
        return self.root / "host-keys"

    @property
    def lab_files(self) -> Path:
        """What the inventory's ssh variables point to."""
        return self.inventory / ".lab"


def labs_dir() -> Path:
    """Folder that holds every lab of this state folder."""
    return state_dir() / "labs"


def lab_dirs(name: str, inventory: Path) -> LabDirs:
    """Return the folders of a lab.

    Raises:
        CouldNotRunError: the state or cache folder's path cannot be given to an overlay mount.
    """
    for path in (labs_dir(), cache_dir()):
        if _UNMOUNTABLE & set(str(path)):
            raise CouldNotRunError(
                f"{path}: a comma, colon, quote or backslash in this path cannot be mounted",
                hint="set HPCSITE_STATE_DIR and HPCSITE_CACHE_DIR to plain paths",
            )
    return LabDirs(labs_dir() / name, inventory)


def read_record(path: Path) -> Record | None:
    """Return a lab's record; None if there is none, or a killed command left half of one."""
    try:
        return Record(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def write_record(path: Path, record: Record) -> None:
    """Write a lab's record."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.parent.chmod(0o700)
    write_atomically(path, json.dumps(asdict(record), indent=2) + "\n")


def write_atomically(path: Path, text: str, mode: int = 0o644) -> None:
    """Put a file in place as a whole or not at all; replaces a link instead of following it."""
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    part.touch(mode=mode)
    part.chmod(mode)
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def records() -> list[Record]:
    """Return the records of every lab of this state folder."""
    found = (read_record(path) for path in sorted(labs_dir().glob("*/lab.json")))
    return [record for record in found if record]


def find_record(inventory: Path) -> Record | None:
    """Return the record of the lab that was made from this inventory folder."""
    return next((found for found in records() if found.inventory == str(inventory)), None)


@contextmanager
def lock(name: str, say: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold one of the lab's locks; waits up to ten minutes for another command.

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
            say(f"waiting for another `hpcsite lab` command ({name})")
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
            f"another `hpcsite lab` command holds {held.lock_file} for ten minutes ({name})",
            hint=f"find it with: fuser -v {held.lock_file}",
        ) from error
