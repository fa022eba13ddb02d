"""A lab's life: up, reset, stop, start, down. Each holds the lab's lock while it works."""

import platform
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from hpcsite.errors import CouldNotRunError, Problem, UsageError
from hpcsite.image import disk, files, recipe, roots, tools
from hpcsite.image.roots import Image
from hpcsite.lab import host, network, nspawn, state, teardown
from hpcsite.lab.session import Session, open_session
from hpcsite.lab.spec import LabSpec, Machine

Say = Callable[[str], None]

_UP_MIB = 1024
# Python's name of a machine type → Debian's.
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "ppc64le": "ppc64el"}


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
        current = _image(session, say, rebuild=rebuild)
        teardown.remove_unnamed(session, say)
        session.each(spec.machines, lambda machine: _bring_up(session, machine, current, say))
        roots.release(session.dirs.root, still_used=session.backend.images())
        firewall = network.forwarding_problem(spec.name)
        return [firewall] if firewall else []


def reset(spec: LabSpec, nodes: Collection[str], say: Say) -> None:
    """Replace machines by fresh ones that keep their names, addresses and host keys.

    Raises:
        HpcsiteError: there is no such machine, or one does not come up.
    """
    machines = _chosen(spec, nodes)
    with _locked(spec, say):
        _require_up(spec)
        session = open_session(spec)
        current = _image(session, say, rebuild=False)

        def renew(machine: Machine) -> None:
            session.backend.make(machine, current, session.host_keys[machine.name])
            session.boot(machine)

        session.each(machines, renew)
        roots.release(session.dirs.root, still_used=session.backend.images())


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
    host.require_root()
    tools.require(nspawn.TOOLS)
    with disk.disk_errors(), files.lock(f"lab-{spec.name}", say):
        yield


def _claim(spec: LabSpec, say: Say) -> None:
    """Make the lab's name this inventory's, unless another lab has it."""
    dirs = state.lab_dirs(spec.name, spec.inventory)
    other = state.find_record(spec.inventory)
    if other and other.name != spec.name:
        raise CouldNotRunError(
            f"this inventory's lab is up under its former site_name, {other.name}",
            hint=f"hpcsite lab down {spec.inventory}, then up again",
        )
    teardown.require_own_name(spec.name, spec.inventory)
    network.require_own_bridge(spec.name, dirs.root)
    network.require_free(spec.name, spec.network)
    disk.require_space(dirs.root, _UP_MIB, "for the machines")
    held = state.read_record(dirs.record)
    if held and held.inventory != str(spec.inventory):
        say(f"removing the lab {spec.name} of {held.inventory}, a folder that is gone")
        teardown.tear_down(spec.name, spec.inventory)
    # The record comes first: whatever is made after it, `down` finds.
    state.write_record(dirs.record, state.Record(spec.name, str(spec.inventory), str(spec.network)))


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


def _image(session: Session, say: Say, *, rebuild: bool) -> Image:
    settings = session.spec.settings
    machine_type = platform.machine()
    found = roots.ensure(
        recipe.Recipe(
            release=settings.release,
            architecture=_ARCHITECTURES.get(machine_type, machine_type),
            packages=settings.packages,
            sources=session.apt.sources(settings.release),
            apt_options=session.apt.options,
        ),
        proxy=session.apt.proxy,
        rebuild=rebuild,
        say=say,
    )
    roots.claim(found, session.dirs.root)
    if found.age_days > roots.OLD_DAYS:
        say(
            f"the image's package lists are {found.age_days} days old; if an install does not "
            f"find its packages: hpcsite lab up --rebuild, then reset"
        )
    return found


def _bring_up(session: Session, machine: Machine, current: Image, say: Say) -> None:
    backend, host_key = session.backend, session.host_keys[machine.name]
    if not backend.exists(machine.name):
        backend.make(machine, current, host_key)
    elif backend.update(machine, host_key) and backend.running(machine.name):
        say(f"{machine.name}: its description changed: restarting it")
        backend.stop(machine.name)
    session.boot(machine)
