"""What a lab keeps on this computer: where, whose, and one command at a time."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from hpcsite.errors import CouldNotRunError
from hpcsite.image.files import write_atomically
from hpcsite.lab import names
from hpcsite.lab.machine import MachineDir
from hpcsite.paths import cache_dir, state_dir

# Characters with a meaning in the options of an overlay mount.
_UNMOUNTABLE = frozenset(',:\\"')


@dataclass(frozen=True)
class Record:
    """Which inventory a lab was made from; the first thing that `up` writes."""

    name: str
    inventory: str
    network: str
    backend: str = "nspawn"


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

    def nodes(self) -> list[str]:
        """Return the names of the machines that have a folder, whole or not."""
        if not self.machines.is_dir():
            return []
        return sorted(path.name for path in self.machines.iterdir())

    @property
    def fabric(self) -> Path:
        """The network of virtual machines: its sockets."""
        return self.root / "fabric"

    @property
    def ending(self) -> Path:
        """Is there while `down` waits: what is at work on the lab gives up."""
        return self.root / "ending"

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
    """Return the folders of a lab."""
    return LabDirs(labs_dir() / name, inventory)


def require_mountable() -> None:
    """Check that the machines' file systems can be mounted where they lie.

    Raises:
        CouldNotRunError: the state or cache folder's path cannot be given to an overlay mount.
    """
    for path in (labs_dir(), cache_dir()):
        if _UNMOUNTABLE & set(str(path)):
            raise CouldNotRunError(
                f"{path}: a comma, colon, quote or backslash in this path cannot be mounted",
                hint="set HPCSITE_STATE_DIR and HPCSITE_CACHE_DIR to plain paths",
            )


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


def records() -> list[Record]:
    """Return the records of every lab of this state folder."""
    found = (read_record(path) for path in sorted(labs_dir().glob("*/lab.json")))
    return [record for record in found if record]


def find_record(inventory: Path) -> Record | None:
    """Return the record of the lab that was made from this inventory folder."""
    return next((found for found in records() if found.inventory == str(inventory)), None)
