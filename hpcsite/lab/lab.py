"""A lab's life: up, reset, stop, start, down. Each holds the lab's lock while it works."""

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from hpcsite.errors import CouldNotRunError, Problem, UsageError
from hpcsite.image import disk, files
from hpcsite.lab import state, teardown
from hpcsite.lab.backend import Say
from hpcsite.lab.kinds import KINDS
from hpcsite.lab.session import Session, open_session
from hpcsite.lab.spec import LabSpec, Machine

_UP_MIB = 1024


def up(spec: LabSpec, say: Say, *, rebuild: bool = False) -> list[Problem]:
    """Make the lab's machines, or mend what is there; machines that run well are left alone.

    Returns:
        What the lab works with, but its user should know.

    Raises:
        HpcsiteError: the host cannot hold the lab, or a machine does not come up.
    """
    with _locked(spec, say):
        _claim(spec, say)
        session = open_session(spec)
        session.backend.prepare(spec.machines, rebuild=rebuild, say=say)
        teardown.remove_unnamed(session, say)
        session.each(spec.machines, lambda machine: _bring_up(session, machine, say))
        session.backend.release()
        return session.backend.warnings()


def reset(spec: LabSpec, nodes: Collection[str], say: Say) -> None:
    """Replace machines by fresh ones that keep their names, addresses and host keys.

    Raises:
        HpcsiteError: there is no such machine, or one does not come up.
    """
    machines = _chosen(spec, nodes)
    with _locked(spec, say):
        _require_up(spec)
        session = open_session(spec)
        session.backend.require_room(machines)
        session.backend.prepare(machines, rebuild=False, say=say)

        def renew(machine: Machine) -> None:
            session.backend.make(machine, session.host_keys[machine.name])
            session.boot(machine)

        session.each(machines, renew)
        session.backend.release()


def stop(spec: LabSpec, nodes: Collection[str], say: Say) -> None:
    """Shut machines down; they keep their file systems.

    Raises:
        HpcsiteError: there is no such machine.
    """
    machines = _chosen(spec, nodes)
    with _locked(spec, say):
        _require_up(spec)
        session = open_session(spec)
        session.each(machines, lambda machine: session.backend.stop(machine.name))


def start(spec: LabSpec, nodes: Collection[str], say: Say) -> None:
    """Switch machines on and wait until they answer.

    Raises:
        HpcsiteError: there is no such machine, it was never made, or it does not come up.
    """
    machines = _chosen(spec, nodes)
    with _locked(spec, say):
        _require_up(spec)
        session = open_session(spec)
        session.backend.require_room(machines)

        def switch_on(machine: Machine) -> None:
            if not session.backend.exists(machine.name):
                raise CouldNotRunError(
                    "this machine was never made", hint=f"hpcsite lab up {spec.inventory}"
                )
            session.backend.update(machine, session.host_keys[machine.name])
            session.boot(machine)

        session.each(machines, switch_on)


@contextmanager
def _locked(spec: LabSpec, say: Say) -> Iterator[None]:
    KINDS[spec.settings.backend].require()
    with disk.disk_errors(), files.lock(f"lab-{spec.name}", say):
        yield


def _claim(spec: LabSpec, say: Say) -> None:
    """Make the lab's name this inventory's, unless another lab has it."""
    kind = KINDS[spec.settings.backend]
    dirs = state.lab_dirs(spec.name, spec.inventory)
    _require_writable(spec)
    other = state.find_record(spec.inventory)
    if other and other.name != spec.name:
        raise CouldNotRunError(
            f"this inventory's lab is up under its former site_name, {other.name}",
            hint=f"hpcsite lab down {spec.inventory}, then up again",
        )
    if other and other.backend != spec.settings.backend:
        raise CouldNotRunError(
            f"this inventory's lab is up with the backend {other.backend}",
            hint=f"hpcsite lab down {spec.inventory}, then up again",
        )
    teardown.require_own_name(spec.name, spec.inventory)
    kind.require_own(spec.name, dirs)
    kind.require_free(spec, dirs)
    disk.require_space(dirs.root, _UP_MIB, "for the machines")
    held = state.read_record(dirs.record)
    if held and held.inventory != str(spec.inventory):
        say(f"removing the lab {spec.name} of {held.inventory}, a folder that is gone")
        teardown.tear_down(spec.name, spec.inventory, held.backend)
    # The record comes first: whatever is made after it, `down` finds.
    record = state.Record(spec.name, str(spec.inventory), str(spec.network), spec.settings.backend)
    state.write_record(dirs.record, record)


def _require_writable(spec: LabSpec) -> None:
    """Check that the lab's key can be put beside the inventory, where Ansible finds it."""
    files_ = spec.inventory / ".lab"
    for folder in (files_ if files_.exists() else spec.inventory, files_ / "ssh"):
        if folder.exists() and not os.access(folder, os.W_OK | os.X_OK):
            raise CouldNotRunError(
                f"{folder} cannot be written, and the lab keeps its ssh key there",
                hint="copy the inventory to a folder of your own; where another user's lab is up "
                "from this one, choose a site_name, ports and a folder of your own",
            )


def _require_up(spec: LabSpec) -> None:
    found = state.find_record(spec.inventory)
    if found is None or found.name != spec.name:
        raise CouldNotRunError(
            f"the lab {spec.name} is not up", hint=f"hpcsite lab up {spec.inventory}"
        )


def _chosen(spec: LabSpec, nodes: Collection[str]) -> list[Machine]:
    known = {machine.name: machine for machine in spec.machines}
    unknown = [node for node in nodes if node not in known]
    if unknown:
        raise UsageError(
            f"the lab {spec.name} has no machine {', '.join(unknown)}",
            hint=f"its machines: {' '.join(known)}",
        )
    return [known[node] for node in nodes] if nodes else list(known.values())


def _bring_up(session: Session, machine: Machine, say: Say) -> None:
    backend, host_key = session.backend, session.host_keys[machine.name]
    if not backend.exists(machine.name):
        backend.make(machine, host_key)
    elif backend.update(machine, host_key) and backend.running(machine.name):
        say(f"{machine.name}: its description changed: restarting it")
        backend.stop(machine.name)
    session.boot(machine)
