"""The questions of `hpcsite init` on a terminal; an answer that cannot be is asked for again."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import click
from pydantic import ValidationError

from hpcsite.cli.init import named, nfs_server, profile
from hpcsite.errors import UsageError
from hpcsite.site.model import Gpus, Hardware
from hpcsite.site.rdma import Mode
from hpcsite.site.starter import (
    Machine,
    Starter,
    StarterGroup,
    StarterRdma,
    check_target,
    values,
)

_T = TypeVar("_T")
_RDMA: tuple[Mode, ...] = ("none", "infiniband", "roce", "soft_roce")


def asked(folder: Path) -> Starter:
    """Ask for all that a starter inventory needs."""
    check_target(folder)
    _say("What is in [brackets] is taken when you press Enter; Ctrl-C ends this without a trace.\n")
    name = _ask("Name of the site", values.site_name, named(folder, None))
    head = _machine("Controller", "head", [])
    taken = [head]
    logins = _ask_logins(taken)
    groups = _ask_groups(taken)
    server = _ask_nfs(taken)
    groups = _with_rdma(groups)
    users = _ask("Users beside hpctest, as NAME or NAME=UID, with commas", values.users, "")
    user = _ask(
        "Who logs in by ssh: root, or a user with passwordless sudo", values.login_name, "root"
    )
    return Starter(
        name=name,
        head=head,
        logins=logins,
        groups=groups,
        nfs_server=server,
        users=users,
        ssh_user=user,
    )


def _say(text: str) -> None:
    # What is asked is no data: stdout has the folder's name only.
    click.echo(text, err=True)


def _ask(question: str, function: Callable[[str], _T], default: str | None = None) -> _T:
    """Ask until the answer can be read."""
    while True:
        text = click.prompt(
            question,
            default=default,
            show_default=bool(default),
            err=True,
            value_proc=lambda answer: str(answer).strip(),
        )
        try:
            return function(text)
        except UsageError as error:
            _say(f"  {error.message}; {error.hint}")


def _yes(question: str, *, default: bool) -> bool:
    return click.confirm(question, default=default, err=True)


def _machine(what: str, default: str, taken: list[Machine]) -> Machine:
    """Ask for a name and an address that no machine has yet."""
    name = _ask(f"{what}: short host name", lambda text: _free_name(text, taken), default)
    address = _ask(f"{what}: IPv4 address", lambda text: _free_address(text, taken))
    return Machine(name, address)


def _free_name(text: str, taken: list[Machine]) -> str:
    _refuse_same([Machine(values.host_name(text), "")], taken)
    return text


def _free_address(text: str, taken: list[Machine]) -> str:
    found = Machine("", str(values.usable_address(text)))
    _refuse_same([found], taken)
    return found.address


def _refuse_same(machines: list[Machine], taken: list[Machine]) -> None:
    names = {machine.name.lower(): machine for machine in taken}
    addresses = {machine.address: machine for machine in taken}
    for machine in machines:
        other = names.get(machine.name.lower()) or addresses.get(machine.address)
        if other:
            raise UsageError(
                f"{other.name} has the same name or address ({other.address})",
                hint="give each machine its own",
            )


def _ask_logins(taken: list[Machine]) -> tuple[Machine, ...]:
    logins: list[Machine] = []
    while _yes("Another login node?" if logins else "Is there a login node?", default=not logins):
        logins.append(_machine("Login node", f"login{len(logins) + 1}", taken))
        taken.append(logins[-1])
    return tuple(logins)


def _ask_groups(taken: list[Machine]) -> tuple[StarterGroup, ...]:
    _say("\nCompute nodes. A node group is nodes that are alike.")
    groups: list[StarterGroup] = []
    while not groups or _yes("Another node group?", default=False):
        group = _ask_group(taken, [group.name for group in groups])
        groups.append(group)
        taken += group.nodes
    return tuple(groups)


def _ask_group(taken: list[Machine], names: list[str]) -> StarterGroup:
    nodes = _ask(
        "Nodes, e.g. gpu[01-04]", lambda text: _free_nodes(text, taken), None if names else "node01"
    )
    machines = _ask(
        f"IPv4 address of {nodes[0]}" + ("; the others follow" if len(nodes) > 1 else ""),
        lambda text: _following(nodes, text, taken),
    )
    name = values.group_name(nodes, [*names, *(machine.name for machine in taken)])
    found = _ask(
        "Hardware profile (docs/catalogue.md), or none",
        lambda t: "" if t == "none" else profile(t),
        "none",
    )
    if found:
        return StarterGroup(name, machines, profile=found)
    gpus = _ask("GPUs in each node", _gpus, "0")
    hardware = _ask(
        "CPUs and memory as SOCKETS CORES_PER_SOCKET THREADS_PER_CORE MEMORY_MIB, or measured",
        _hardware,
        "measured",
    )
    return StarterGroup(name, machines, gpus=gpus, hardware=hardware)


def _free_nodes(text: str, taken: list[Machine]) -> list[str]:
    names = values.node_names(text)
    _refuse_same([Machine(name, "") for name in names], taken)
    return names


def _following(names: list[str], text: str, taken: list[Machine]) -> tuple[Machine, ...]:
    machines = values.addressed(names, text)
    for machine in machines:
        values.usable_address(machine.address)
    _refuse_same(list(machines), taken)
    return machines


def _gpus(text: str) -> int:
    try:
        number = int(text)
        return Gpus(count=number).count if number else 0
    except ValueError:  # a ValidationError is one
        raise UsageError(f"{text!r} is no number of GPUs", hint="0 to 64") from None


def _hardware(text: str) -> Hardware | None:
    if text == "measured":
        return None
    names = ("sockets", "cores_per_socket", "threads_per_core", "memory_mib")
    words = text.split()
    try:
        if len(words) == len(names) and all(word.isascii() and word.isdigit() for word in words):
            return Hardware(**dict(zip(names, map(int, words), strict=True)))
    except ValidationError:
        pass
    raise UsageError(f"{text!r} cannot be", hint="e.g. 2 32 1 515000, or measured")


def _ask_nfs(taken: list[Machine]) -> Machine | None:
    _say("")
    if not _yes("Shall one machine share /home with the others, by NFS?", default=True):
        return None

    def server(text: str) -> Machine:
        if "=" in text:
            found = values.machine(text)
            values.usable_address(found.address)
            _refuse_same([found], taken)
            return found
        return nfs_server(text, taken)

    return _ask("NFS server: one of the machines, or NAME=ADDRESS", server, taken[0].name)


def _with_rdma(groups: tuple[StarterGroup, ...]) -> tuple[StarterGroup, ...]:
    mode: Mode = click.prompt(
        "RDMA of the compute nodes", type=click.Choice(_RDMA), default="none", err=True
    )
    if mode == "none":
        return groups
    interface = ""
    if mode in ("roce", "soft_roce"):
        interface = _ask("Network interface under it, as `ip link` names it", values.interface)
    speed = 0
    if mode == "infiniband":
        speed = click.prompt(
            "Speed of a port in Gb/s", type=click.IntRange(1), default=400, err=True
        )
    rdma = StarterRdma(mode, interface, speed_gbit_s=speed)
    return tuple(replace(group, rdma=rdma) for group in groups)
