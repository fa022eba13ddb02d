"""Removing a lab, whole or in part, whatever state it is in."""

import contextlib
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hpcsite.errors import CouldNotRunError
from hpcsite.image import files, mounts, roots
from hpcsite.lab import host, machine, network, state
from hpcsite.lab.session import Session


def down(name: str, inventory: Path, say: Callable[[str], None]) -> bool:
    """Remove everything of a lab but the caches; tell whether there was anything.

    Raises:
        CouldNotRunError: not root, the lab is another inventory's, or another command works on
            it and does not end.
    """
    host.require_root()
    with files.lock(f"lab-{name}", say):
        dirs = state.lab_dirs(name, inventory)
        require_own_name(name, inventory)
        network.require_own_bridge(name, dirs.root)
        found = dirs.root.exists() or dirs.lab_files.exists()
        tear_down(name, inventory)
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


def tear_down(name: str, inventory: Path) -> None:
    """Remove everything of a lab but the caches. Only under the lab's lock."""
    dirs = state.lab_dirs(name, inventory)
    nodes = [path.name for path in dirs.machines.iterdir()] if dirs.machines.is_dir() else []
    with ThreadPoolExecutor(len(nodes) or 1) as pool:
        list(pool.map(lambda node: machine.remove(dirs.machine(node)), nodes))
    network.remove(name)
    mounts.unmount_below(dirs.root)
    roots.release(dirs.root)
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
    for path in sorted(session.dirs.machines.glob("*")):
        if path.name not in named:
            say(f"removing {path.name}: the inventory does not name it any more")
            session.backend.remove(path.name)
            shutil.rmtree(session.dirs.host_keys / path.name, ignore_errors=True)
