"""A commented inventory to begin with, written for the machines that the user names."""

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address
from itertools import count
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from hpcsite.errors import CouldNotRunError, UsageError
from hpcsite.paths import content_dir

# File in the inventory folder → template.
_FILES = {
    "hosts.yml": "hosts.yml.j2",
    "group_vars/all/site.yml": "site.yml.j2",
    "group_vars/all/slurm.yml": "slurm.yml.j2",
    "group_vars/all/connection.yml": "connection.yml.j2",
    ".gitignore": "gitignore.j2",
}
_LAB = ("hosts.yml", "group_vars", ".gitignore")


@dataclass(frozen=True)
class Machine:
    """A host and the address by which ssh reaches it."""

    name: str
    address: str


@dataclass(frozen=True)
class Starter:
    """What a starter inventory is written for."""

    name: str
    head: Machine
    login: Machine | None
    nodes: tuple[Machine, ...]
    group: str
    gpus: int
    timezone: str = "Etc/UTC"

    @property
    def free_address(self) -> IPv4Address:
        """The address nearest to the head's that no machine has; for the sample login node."""
        taken = {IPv4Address(machine.address) for machine in (self.head, *self.nodes)}
        head = int(IPv4Address(self.head.address))
        near = ((head + sign * step) % 2**32 for step in count(1) for sign in (1, -1))
        # .0 and .255 are mostly the network's own.
        usable = (IPv4Address(number) for number in near if 0 < number % 256 < 255)
        return next(address for address in usable if address not in taken)


def write_starter(target: Path, starter: Starter) -> None:
    """Write a starter inventory; raises `UsageError` for a folder that holds something."""
    templates = Environment(
        loader=PackageLoader("hpcsite.site", "starter"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - YAML, of values checked by the caller
    )

    def fill(folder: Path) -> None:
        for name, template in _FILES.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            text = templates.get_template(template).render(
                vars(starter), free_address=starter.free_address
            )
            path.write_text(text, encoding="utf-8")

    _write(target, fill)


def copy_lab(target: Path) -> None:
    """Copy the lab's inventory; raises `UsageError` for a folder that holds something."""
    source = content_dir() / "inventory" / "lab"

    def fill(folder: Path) -> None:
        for name in _LAB:
            if (source / name).is_dir():
                shutil.copytree(source / name, folder / name)
            else:
                shutil.copyfile(source / name, folder / name)

    _write(target, fill)


def _write(target: Path, fill: Callable[[Path], None]) -> None:
    """Make a folder whole or not at all."""
    try:
        if target.is_symlink() or (target.exists() and not target.is_dir()):
            raise UsageError(f"{target} exists and is no folder", hint="choose another name")
        if target.is_dir() and next(target.iterdir(), None) is not None:
            raise UsageError(
                f"{target} is not empty; nothing was written",
                hint="choose a new folder, or remove this one first",
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as scratch:
            made = Path(scratch) / "inventory"
            made.mkdir()
            fill(made)
            made.rename(target)
    except OSError as error:
        raise CouldNotRunError(
            f"cannot write {target}: {error.filename}: {error.strerror}",
            hint="check the path and its permissions",
        ) from error
