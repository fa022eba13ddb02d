"""Which files of an inventory folder Ansible reads, and which of them cannot be read.

The rules are Ansible's own (its inventory manager and its host_group_vars plugin): suffixes that
are skipped, hidden names, `group_vars/<group>` as a file or as a folder.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from hpcsite.errors import Location, Problem

YAML_SUFFIXES = ("", ".yml", ".yaml", ".json")
MAX_BYTES = 4 * 1024 * 1024
_VARS_FOLDERS = ("group_vars", "host_vars")
# Ansible's INVENTORY_IGNORE_EXTS, and what ansible.cfg and the inventory manager leave out.
_IGNORED_SUFFIXES = (
    *(".pyc", ".pyo", ".swp", ".bak", "~", ".rpm", ".md", ".txt", ".rst", ".orig", ".cfg"),
    ".retry",
)
# Says which entries Ansible passes over.
_Skip = Callable[[Path], bool]
_IGNORED_NAMES = ("group_vars", "host_vars", "vars_plugins", "secrets", "hardware")


class Kind(Enum):
    """What a file holds."""

    INVENTORY = "inventory"
    GROUP_VARS = "group_vars"
    HOST_VARS = "host_vars"


@dataclass(frozen=True)
class SourceFile:
    """One file that Ansible reads; `owner` is the group or host of a variables file."""

    path: Path
    kind: Kind
    owner: str = ""


@dataclass
class Folder:
    """The files of an inventory folder, and what is wrong with them."""

    files: list[SourceFile] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def scan_folder(root: Path) -> Folder:
    """List the files of an inventory folder. A path that is no such folder is a problem too."""
    folder = Folder()
    if problem := _not_a_folder(root):
        folder.problems.append(problem)
        return folder
    try:
        _scan(root, folder)
    except OSError as error:
        # A folder that can be listed but not entered: its names show, nothing else.
        folder.problems.append(_unreadable(Path(error.filename or root), error))
    return folder


def _scan(root: Path, folder: Folder) -> None:
    for path in _walk(root, folder, skip=_ignored):
        folder.files.append(SourceFile(path, Kind.INVENTORY))
    if not folder.files and not folder.problems:
        folder.problems.append(
            Problem(
                "the folder holds no inventory file",
                Location(root),
                hint=f"put hosts.yml into it; `hpcsite init {root}` writes one to begin with",
                code="HPC1003",
            )
        )
    for name in _VARS_FOLDERS:
        if (root / name).is_dir():
            _scan_vars(root / name, Kind(name), folder)


def _not_a_folder(root: Path) -> Problem | None:
    try:
        if root.is_dir():
            next(root.iterdir(), None)
            return None
        exists = root.exists()
    except OSError as error:
        return Problem(
            f"the inventory folder cannot be read: {error.strerror}",
            Location(root),
            hint="check the path and its permissions",
            code="HPC1004",
        )
    if root.is_symlink() and not exists:
        return _dead_link(root)
    if exists:
        return Problem(
            "the inventory is a file; hpcsite needs the folder around it",
            Location(root),
            hint=f"name the folder: {root.parent}",
            code="HPC1002",
        )
    return Problem(
        "there is no such inventory folder",
        Location(root),
        hint=f"check the path, or make a new one with `hpcsite init {root}`",
        code="HPC1001",
    )


def _scan_vars(base: Path, kind: Kind, folder: Folder) -> None:
    """Read `group_vars/` or `host_vars/`: `<owner>`, `<owner>.yml` or a folder `<owner>/`."""
    for entry in sorted(base.iterdir()):
        if _hidden(entry) or (not entry.is_dir() and entry.suffix not in YAML_SUFFIXES):
            continue
        owner = entry.name if entry.is_dir() else entry.name.removesuffix(entry.suffix)
        if hidden_by := _hidden_by(entry, owner):
            folder.problems.append(
                Problem(
                    f"Ansible does not read this file, because {hidden_by} exists",
                    Location(entry),
                    hint=f"merge the two, e.g. move this file into {base / owner}/",
                    code="HPC1009",
                )
            )
            continue
        for path in _walk(entry, folder, skip=_not_vars) if entry.is_dir() else [entry]:
            if entry.is_dir() or _readable(path, folder):
                folder.files.append(SourceFile(path, kind, owner))


def _hidden_by(entry: Path, owner: str) -> Path | None:
    """Find what Ansible reads in place of `entry`: of several suffixes it takes the first."""
    candidates = [entry.parent / f"{owner}{suffix}" for suffix in YAML_SUFFIXES]
    first = next(path for path in candidates if path.exists() or path == entry)
    return None if first == entry else first


def _walk(top: Path, folder: Folder, *, skip: _Skip) -> Iterator[Path]:
    """Yield every readable file below `top`; the others become problems."""
    yield from _descend(top, folder, skip, (top.resolve(),))


def _descend(top: Path, folder: Folder, skip: _Skip, above: tuple[Path, ...]) -> Iterator[Path]:
    try:
        entries = sorted(top.iterdir())
    except OSError as error:
        folder.problems.append(_unreadable(top, error))
        return
    for entry in entries:
        if skip(entry):
            continue
        if not entry.is_dir():
            if _readable(entry, folder):
                yield entry
        elif (real := entry.resolve()) in above:
            folder.problems.append(
                Problem(
                    "this symbolic link leads back to a folder above it",
                    Location(entry),
                    hint="remove the link",
                    code="HPC1006",
                )
            )
        else:
            yield from _descend(entry, folder, skip, (*above, real))


def _ignored(entry: Path) -> bool:
    return _hidden(entry) or entry.name in _IGNORED_NAMES or entry.name.endswith(_IGNORED_SUFFIXES)


def _not_vars(entry: Path) -> bool:
    return _hidden(entry) or (not entry.is_dir() and entry.suffix not in YAML_SUFFIXES)


def _hidden(entry: Path) -> bool:
    return entry.name.startswith(".") or entry.name.endswith("~")


def _readable(path: Path, folder: Folder) -> bool:
    """Whether a file can be read whole; adds the problem if not."""
    problem = _file_problem(path)
    if problem:
        folder.problems.append(problem)
    return problem is None


def _file_problem(path: Path) -> Problem | None:
    if path.is_symlink() and not path.exists():
        return _dead_link(path)
    if not path.is_file():
        return Problem(
            "this is not a regular file",
            Location(path),
            hint="move it out of the inventory",
            code="HPC1007",
        )
    try:
        size = path.stat().st_size
        with path.open("rb"):
            pass
    except OSError as error:
        return _unreadable(path, error)
    if size > MAX_BYTES:
        return Problem(
            f"this file is {size // 1024**2} MiB; hpcsite reads at most {MAX_BYTES // 1024**2} MiB",
            Location(path),
            hint="an inventory file is text written by a person; is this one of another kind?",
            code="HPC1008",
        )
    return None


def _dead_link(path: Path) -> Problem:
    return Problem(
        "this symbolic link leads nowhere",
        Location(path),
        hint="remove or repair the link",
        code="HPC1005",
    )


def _unreadable(path: Path, error: OSError) -> Problem:
    return Problem(
        f"cannot be read: {error.strerror}",
        Location(path),
        hint="check its permissions",
        code="HPC1004",
    )
