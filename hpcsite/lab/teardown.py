"""Removing a lab, whole or in part, whatever state it is in."""

import contextlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hpcsite.errors import CouldNotRunError
from hpcsite.image import files
from hpcsite.lab import state
from hpcsite.lab.kinds import KINDS
from hpcsite.lab.session import Session
from hpcsite.lab.state import LabDirs


def down(name: str, inventory: Path, backend: str, say: Callable[[str], None]) -> bool:
    """Remove everything of a lab but the caches; tell whether there was anything.

    A command that waits for the lab's machines to boot gives up.

    Raises:
        CouldNotRunError: this user has no labs of this kind, the lab is another inventory's, or
            another command works on it and does not end.
    """
    kind = KINDS[backend]
    kind.require()
    dirs = state.lab_dirs(name, inventory)
    require_own_name(name, inventory)
    with _announced(dirs), files.lock(f"lab-{name}", say):
        require_own_name(name, inventory)
        kind.require_own(name, dirs)
        found = dirs.root.exists() or dirs.lab_files.exists()
        tear_down(name, inventory, backend)
        return found


def require_own_name(name: str, inventory: Path) -> None:
    """Check that no other inventory folder has a lab of this name; one that is gone has none.

    Raises:
        CouldNotRunError: another has.
    """
    held = state.read_record(state.lab_dirs(name, inventory).record)
    if held and held.inventory != str(inventory) and Path(held.inventory).is_dir():
        raise CouldNotRunError(
            f"a lab named {name} was made from {held.inventory}",
            hint=f"hpcsite lab down {held.inventory}, or choose another site_name",
        )


def tear_down(name: str, inventory: Path, backend: str) -> None:
    """Remove everything of a lab but the caches. Only under the lab's lock."""
    dirs = state.lab_dirs(name, inventory)
    KINDS[backend].tear_down(name, dirs)
    if dirs.lab_files.exists():
        shutil.rmtree(dirs.lab_files)
    if dirs.root.exists():
        shutil.rmtree(dirs.root)
    for folder in (dirs.root.parent, dirs.root.parent.parent):
        with contextlib.suppress(OSError):  # another lab, or another part of hpcsite, is in it
            folder.rmdir()


def remove_unnamed(session: Session, say: Callable[[str], None]) -> None:
    """Remove machines that the inventory does not name any more."""
    named = {machine.name for machine in session.spec.machines}
    for node in session.dirs.nodes():
        if node not in named:
            say(f"removing {node}: the inventory does not name it any more")
            session.backend.remove(node)
            shutil.rmtree(session.dirs.host_keys / node, ignore_errors=True)


@contextmanager
def _announced(dirs: LabDirs) -> Iterator[None]:
    """Tell a command that works on the lab that it is about to be removed."""
    if dirs.root.is_dir():
        dirs.ending.touch()
    try:
        yield
    finally:
        dirs.ending.unlink(missing_ok=True)
