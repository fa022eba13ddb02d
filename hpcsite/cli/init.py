"""`hpcsite init`: a commented inventory to begin with."""

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, get_args

import click
from pydantic import ValidationError

from hpcsite.cli import console
from hpcsite.errors import UsageError
from hpcsite.site.catalogue import load_catalogue
from hpcsite.site.model import Hardware
from hpcsite.site.names import did_you_mean
from hpcsite.site.rdma import Mode
from hpcsite.site.starter import (
    Machine,
    Starter,
    StarterGroup,
    StarterRdma,
    copy_lab,
    values,
    write_starter,
)

# RFC 5737: addresses for examples; `hpcsite validate` refuses them until they are replaced.
_HEAD = "head=192.0.2.10"
_NODES, _FIRST_ADDRESS = "node[01-02]", "192.0.2.21"
_RDMA_MODES = get_args(Mode)
_NUMBERS = ("gpus", "sockets", "cores_per_socket", "threads_per_core", "memory_mib")
_WORDS = ("profile", "gpu_type")
_GROUP = "e.g. 'gpu:gpu[01-04]:10.0.0.21:profile=dgx-h100'"
_T = TypeVar("_T")


@dataclass(frozen=True)
class Options:
    """The command's options, less those that choose another way to the inventory."""

    name: str | None
    head: str | None
    login: tuple[str, ...]
    nodes: str | None
    first_address: str | None
    gpus: int
    group: tuple[str, ...]
    nfs_server: str | None
    rdma_mode: str | None
    rdma_interface: str | None
    rdma_speed: int | None
    users: str | None
    user: str | None
    ssh_args: str | None

    @property
    def any_given(self) -> bool:
        """Whether there is one at all."""
        return any(vars(self).values())


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("hosts", metavar="[HOST]...", nargs=-1)
@click.option("--name", help="The site's name; default: the folder's.")
@click.option("--head", metavar="NAME=ADDRESS", help="Controller with the accounting database.")
@click.option("--login", metavar="NAME=ADDRESS", multiple=True, help="Login node; may be repeated.")
@click.option("--nodes", metavar="NODESET", help="Compute nodes, e.g. 'gpu[01-04]'.")
@click.option("--first-address", metavar="ADDRESS", help="Of the first node; the others follow.")
@click.option("--gpus", type=click.IntRange(0, 64), default=0, help="GPUs in each node.")
@click.option(
    "--group",
    metavar="NAME:NODESET:ADDRESS[:KEY=VALUE,...]",
    multiple=True,
    help="A node group, in the place of --nodes; may be repeated. Keys: "
    f"{', '.join((*_WORDS, *_NUMBERS))}.",
)
@click.option("--nfs-server", metavar="NAME[=ADDRESS]", help="Shares /home; default: nothing does.")
@click.option("--rdma-mode", type=click.Choice(_RDMA_MODES), help="RDMA of the compute nodes.")
@click.option("--rdma-interface", metavar="NAME", help="Under roce and soft_roce.")
@click.option("--rdma-speed", metavar="GBIT_S", type=click.IntRange(1), help="Of infiniband.")
@click.option("--users", metavar="NAME[=UID],...", help="Users beside the one who verifies.")
@click.option("--discover", is_flag=True, help="Ask each HOST by ssh what it has.")
@click.option("--user", metavar="NAME", help="Who logs in by ssh; default: root.")
@click.option("--ssh-args", metavar="OPTIONS", help="Further options of ssh, e.g. '-i key'.")
@click.option("--skip-unreachable", is_flag=True, help="Go on without hosts that do not answer.")
@click.option("--lab", is_flag=True, help="Copy the lab's inventory, and nothing of the above.")
def command(
    folder: Path,
    hosts: tuple[str, ...],
    *,
    discover: bool,
    skip_unreachable: bool,
    lab: bool,
    **given: object,
) -> None:
    """Write a commented inventory into the new folder DIR.

    The folder is the only description of the site. On a terminal and without options, hpcsite asks
    for what it needs. Elsewhere it holds example machines then, whose addresses `hpcsite validate`
    asks you to replace.

    With --discover, each HOST (node sets or addresses) is asked by ssh what it has: nothing is
    installed or changed there. Hosts that are alike become node groups. --head, --login and
    --nfs-server then take a name only; without --head, the first HOST is the controller.

    \b
    Examples:
      hpcsite init mysite --head head=10.0.0.10 --login login=10.0.0.11 \\
        --nodes 'gpu[01-04]' --first-address 10.0.0.21 --gpus 8
      hpcsite init mysite --discover head login 'gpu[01-04]' --login login
      hpcsite validate mysite
    """
    options = Options(**given)  # type: ignore[arg-type] # click has made them
    example = False
    if not discover and (hosts or skip_unreachable):
        raise UsageError(
            f"{hosts[0] if hosts else '--skip-unreachable'}: only with --discover",
            hint="hpcsite init DIR --discover HOST...",
        )
    if lab:
        if discover or options.any_given:
            raise UsageError("--lab takes no other option", hint="edit the copied files instead")
        copy_lab(folder)
    elif discover:
        from hpcsite.cli.discovering import discovered

        write_starter(folder, discovered(folder, hosts, options, skip=skip_unreachable))
    elif _is_terminal() and not options.any_given:
        from hpcsite.cli.asking import asked

        write_starter(folder, asked(folder))
    else:
        example = not options.head
        write_starter(folder, _starter(folder, options))
    click.echo(str(folder))
    console.say(
        f"next: put your machines into {folder / 'hosts.yml'}; "
        f"`hpcsite validate {folder}` says what is left to fill in"
        if example
        else f"next: read the files in {folder} through, then `hpcsite validate {folder}`"
    )


def _is_terminal() -> bool:
    """Whether there is somebody who can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def read(option: str, function: Callable[[str], _T], text: str) -> _T:
    """Read an option's value; what is wrong with it names the option."""
    try:
        return function(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error.message}", hint=error.hint) from error


def named(folder: Path, name: str | None) -> str:
    """Give the site's name; without one, the folder's serves."""
    return values.site_name(name) if name else values.site_name_of(folder.resolve().name)


def _starter(folder: Path, options: Options) -> Starter:
    nodes, first_address = options.nodes, options.first_address
    if bool(nodes) != bool(first_address):
        raise UsageError(
            "--nodes and --first-address go together",
            hint="e.g. --nodes 'gpu[01-04]' --first-address 10.0.0.21",
        )
    if options.group and (nodes or options.gpus):
        raise UsageError(
            "--group goes without --nodes, --first-address and --gpus",
            hint=f"say it all with --group, {_GROUP}",
        )
    head = read("--head", values.machine, options.head or _HEAD)
    logins = tuple(read("--login", values.machine, login) for login in options.login)
    rdma = _rdma(options)
    groups = tuple(read("--group", lambda t: parsed_group(t, rdma), t) for t in options.group) or (
        _only_group(nodes or _NODES, first_address or _FIRST_ADDRESS, options.gpus, rdma),
    )
    known = [head, *logins, *(node for group in groups for node in group.nodes)]
    return Starter(
        name=named(folder, options.name),
        head=head,
        logins=logins,
        groups=groups,
        nfs_server=nfs_server(options.nfs_server, known) if options.nfs_server else None,
        users=read("--users", values.users, options.users or ""),
        ssh_user=read("--user", values.login_name, options.user or "root"),
        ssh_args=options.ssh_args or "",
    )


def _only_group(nodes: str, first: str, gpus: int, rdma: StarterRdma | None) -> StarterGroup:
    names = read("--nodes", values.node_names, nodes)
    machines = read("--first-address", lambda text: values.addressed(names, text), first)
    return StarterGroup(values.group_name(names), machines, gpus=gpus, rdma=rdma)


def nfs_server(text: str, known: list[Machine]) -> Machine:
    """Give the machine that is meant: one that is known, or a further one."""
    if "=" in text:
        return read("--nfs-server", values.machine, text)
    for machine in known:
        if machine.name == text:
            return machine
    raise UsageError(
        f"--nfs-server: {text} is none of the machines",
        hint=did_you_mean(text, [m.name for m in known], "give its address too, nfs1=10.0.0.12"),
    )


def _rdma(options: Options) -> StarterRdma | None:
    mode, interface = options.rdma_mode, options.rdma_interface or ""
    for needs, given, option, example in (
        (mode in ("roce", "soft_roce"), bool(interface), "--rdma-interface", "e.g. eth1"),
        (mode == "infiniband", bool(options.rdma_speed), "--rdma-speed", "e.g. 400, of a port"),
    ):
        if needs != given:
            what = f"--rdma-mode {mode}" if mode else "no --rdma-mode"
            verb = "needs" if needs else "goes without"
            raise UsageError(f"{what} {verb} {option}", hint=example)
    if mode in (None, "none"):
        return None
    if interface:
        read("--rdma-interface", values.interface, interface)
    return StarterRdma(mode, interface, speed_gbit_s=options.rdma_speed or 0)  # type: ignore[arg-type] # click has checked it


def parsed_group(text: str, rdma: StarterRdma | None) -> StarterGroup:
    """Read NAME:NODESET:ADDRESS[:KEY=VALUE,…]."""
    name, *rest = text.split(":", maxsplit=3)
    if len(rest) not in (2, 3) or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise UsageError(f"{text!r} is no name, node set and first address", hint=_GROUP)
    keys = _group_keys(rest[2] if len(rest) == 3 else "")
    nodes = values.addressed(values.node_names(rest[0]), rest[1])
    number = {key: int(value) for key, value in keys.items() if key in _NUMBERS}
    return StarterGroup(
        name,
        nodes,
        gpus=number.get("gpus", 0),
        gpu_type=keys.get("gpu_type", ""),
        profile=profile(keys.get("profile", "")),
        hardware=_hardware({key: value for key, value in number.items() if key != "gpus"}),
        rdma=rdma,
    )


def _group_keys(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        key, _, value = part.partition("=")
        if key not in (*_WORDS, *_NUMBERS):
            known = f"keys are {', '.join((*_WORDS, *_NUMBERS))}"
            raise UsageError(f"unknown key {key}", hint=did_you_mean(key, _NUMBERS, known))
        if key in _NUMBERS and not (value.isascii() and value.isdigit()):
            raise UsageError(f"{key} is a whole number, not {value!r}", hint=_GROUP)
        found[key] = value
    if "gpu_type" in found and "gpus" not in found:
        raise UsageError(
            "gpu_type needs gpus: how many there are", hint="e.g. gpus=8,gpu_type=h100"
        )
    return found


def _hardware(numbers: dict[str, int]) -> Hardware | None:
    if not numbers:
        return None
    try:
        return Hardware(**numbers)
    except ValidationError as error:
        wrong = sorted({str(detail["loc"][0]) for detail in error.errors()})
        raise UsageError(
            f"missing or impossible: {', '.join(wrong)}",
            hint="sockets, cores_per_socket and memory_mib go together; without them, each node "
            "is measured",
        ) from error


def profile(name: str) -> str:
    """Check the name of a profile; empty for none."""
    known = [p.name for p in load_catalogue().nodes.values() if not p.virtual]
    if name and name not in known:
        listed = f"docs/catalogue.md describes them: {', '.join(sorted(known))}"
        raise UsageError(
            f"there is no hardware profile {name}", hint=did_you_mean(name, known, listed)
        )
    return name
