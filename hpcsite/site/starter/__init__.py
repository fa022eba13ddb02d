"""A commented inventory to begin with, written for the machines that the user names."""

import json
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from hpcsite.errors import CouldNotRunError, InvalidSiteError, Problem, UsageError
from hpcsite.paths import content_dir
from hpcsite.site.load import load_site
from hpcsite.site.starter.model import (
    Machine,
    Starter,
    StarterGroup,
    StarterRdma,
    StarterUser,
)

__all__ = [
    "Machine",
    "Starter",
    "StarterGroup",
    "StarterRdma",
    "StarterUser",
    "UnusableStarterError",
    "check_target",
    "copy_lab",
    "write_starter",
]

# File in the inventory folder → template.
_FILES = {
    "hosts.yml": "hosts.yml.j2",
    "group_vars/all/site.yml": "site.yml.j2",
    "group_vars/all/slurm.yml": "slurm.yml.j2",
    "group_vars/all/connection.yml": "connection.yml.j2",
    ".gitignore": "gitignore.j2",
}
_LAB = ("hosts.yml", "group_vars", ".gitignore")


class UnusableStarterError(UsageError):
    """What was asked for makes no valid site; carries each mistake."""

    def __init__(self, error: InvalidSiteError) -> None:
        super().__init__("the site would not be valid; nothing was written")
        self._problems = [
            Problem(f"{p.message}; nothing was written", hint=p.hint, code=p.code)
            for p in error.problems
        ]

    @property
    def problems(self) -> list[Problem]:
        """The mistakes; their places are gone with the folder."""
        return self._problems


def write_starter(target: Path, starter: Starter) -> None:
    """Write a starter inventory, or nothing.

    Raises `UsageError` for a folder that holds something, and for what makes no valid site.
    """
    starter.check()

    def fill(folder: Path) -> None:
        for name, text in _texts(starter).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        if not starter.is_example:
            try:
                load_site(folder)
            except InvalidSiteError as error:
                raise UnusableStarterError(error) from error

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


def check_target(target: Path) -> None:
    """Raise `UsageError` for what is there and is no empty folder."""
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise UsageError(f"{target} exists and is no folder", hint="choose another name")
    if target.is_dir() and next(target.iterdir(), None) is not None:
        raise UsageError(
            f"{target} is not empty; nothing was written",
            hint="choose a new folder, or remove this one first",
        )


def _texts(starter: Starter) -> dict[str, str]:
    """Make the files, by their names in the folder."""
    templates = Environment(
        loader=PackageLoader("hpcsite.site", "starter"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - YAML, of values checked by the caller
    )
    templates.filters["yaml"] = _scalar
    templates.filters["comment"] = _comment

    def text(template: str, **more: object) -> str:
        # A host's variables stand where it is first named.
        seen: set[str] = set()

        def variables(machine: Machine) -> dict[str, str]:
            first = machine.name not in seen
            seen.add(machine.name)
            return machine.variables if first else {}

        return templates.get_template(template).render(site=starter, variables=variables, **more)

    texts = {name: text(template) for name, template in _FILES.items()}
    if starter.nfs_server:
        texts["group_vars/all/storage.yml"] = text("storage.yml.j2")
    if starter.infiniband_speed:
        texts["group_vars/all/network.yml"] = text("network.yml.j2")
    for group in starter.rdma_groups:
        texts[f"group_vars/{group.name}/rdma.yml"] = text("rdma.yml.j2", rdma=group.rdma)
    for host in starter.rdma_hosts:
        texts[f"host_vars/{host.name}/rdma.yml"] = text("rdma.yml.j2", rdma=host.rdma)
    return texts


def _scalar(value: str) -> str:
    """Write text as a YAML scalar: as it stands where nothing else could be meant."""
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_./-]*|\d+(\.\d+){3}", value)
    words = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
    return value if plain and value.lower() not in words else json.dumps(value, ensure_ascii=False)


def _comment(value: str) -> str:
    """Make one line of what may hold anything, as firmware writes it."""
    return " ".join("".join(c if c.isprintable() else " " for c in value).split())


def _write(target: Path, fill: Callable[[Path], None]) -> None:
    """Make a folder whole or not at all."""
    try:
        check_target(target)
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
