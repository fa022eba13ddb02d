"""`hpcsite init`: a commented inventory to begin with."""

import re
from collections.abc import Callable, Iterable, Mapping
from ipaddress import IPv4Address
from pathlib import Path

import click
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from hpcsite.cli import console
from hpcsite.errors import UsageError
from hpcsite.site.groups import FEATURES
from hpcsite.site.rules.hosts import is_node_name
from hpcsite.site.starter import Machine, Starter, copy_lab, write_starter

# RFC 5737: addresses for examples; `hpcsite validate` refuses them until they are replaced.
_HEAD = "head=192.0.2.10"
_NODES, _FIRST_ADDRESS = "node[01-02]", "192.0.2.21"
_MAX_NODES = 10_000


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--name", help="The site's name; default: the folder's.")
@click.option("--head", metavar="NAME=ADDRESS", help="Controller with the accounting database.")
@click.option("--login", metavar="NAME=ADDRESS", help="Login node; default: none.")
@click.option("--nodes", metavar="NODESET", help="Compute nodes, e.g. 'gpu[01-04]'.")
@click.option("--first-address", metavar="ADDRESS", help="Of the first node; the others follow.")
@click.option("--gpus", type=click.IntRange(0, 64), default=0, help="GPUs in each node.")
@click.option("--lab", is_flag=True, help="Copy the lab's inventory, and nothing of the above.")
def command(folder: Path, *, lab: bool, gpus: int, **options: str | None) -> None:
    """Write a commented inventory into the new folder DIR.

    The folder is the only description of the site. Without options it holds example machines,
    whose addresses `hpcsite validate` asks you to replace.

    \b
    Example:
      hpcsite init mysite --head head=10.0.0.10 --login login=10.0.0.11 \\
        --nodes 'gpu[01-04]' --first-address 10.0.0.21 --gpus 8
      hpcsite validate mysite
    """
    if lab:
        if gpus or any(options.values()):
            raise UsageError("--lab takes no other option", hint="edit the copied files instead")
        copy_lab(folder)
    else:
        write_starter(folder, _starter(folder, options, gpus))
    click.echo(str(folder))
    console.say(
        f"next: read the files in {folder} through, then `hpcsite validate {folder}`"
        if options["head"] or lab
        else f"next: put your machines into {folder / 'hosts.yml'}; "
        f"`hpcsite validate {folder}` says what is left to fill in"
    )


def _starter(folder: Path, options: Mapping[str, str | None], gpus: int) -> Starter:
    nodes, first_address, login = options["nodes"], options["first_address"], options["login"]
    if bool(nodes) != bool(first_address):
        raise UsageError(
            "--nodes and --first-address go together",
            hint="e.g. --nodes 'gpu[01-04]' --first-address 10.0.0.21",
        )
    names = _node_names(nodes or _NODES)
    starter = Starter(
        name=_site_name(options["name"] or folder.resolve().name, given=bool(options["name"])),
        head=_machine("--head", options["head"] or _HEAD),
        login=_machine("--login", login) if login else None,
        nodes=_addressed(names, first_address or _FIRST_ADDRESS),
        group=_group(names),
        gpus=gpus,
    )
    machines = [starter.head, *([starter.login] if starter.login else []), *starter.nodes]
    _distinct(machines, "name", lambda machine: machine.name.lower())
    _distinct(machines, "address", lambda machine: machine.address)
    return starter


def _site_name(text: str, *, given: bool) -> str:
    if not given:
        text = re.sub(r"[^a-z0-9_-]+", "-", text.lower()).lstrip("0123456789_-")[:63] or "site"
    if not re.fullmatch(r"[a-z][a-z0-9_-]{0,62}", text):
        raise UsageError(
            f"{text!r} cannot be a site's name",
            hint="use lower-case letters, digits, - and _, beginning with a letter",
        )
    return text


def _machine(option: str, text: str) -> Machine:
    name, _, address = text.partition("=")
    return Machine(_checked_name(option, name), str(_address(option, address)))


def _checked_name(option: str, name: str) -> str:
    if not is_node_name(name):
        raise UsageError(
            f"{option}: {name!r} is no short host name",
            hint="letters, digits and hyphens, without a domain, e.g. head=10.0.0.10",
        )
    return name


def _address(option: str, text: str) -> IPv4Address:
    try:
        return IPv4Address(text)
    except ValueError:
        raise UsageError(
            f"{option}: {text!r} is no IPv4 address", hint="write it like this: head=10.0.0.10"
        ) from None


def _node_names(text: str) -> list[str]:
    try:
        nodes = NodeSet(text, resolver=RESOLVER_NOGROUP)
    except NodeSetException as error:
        raise UsageError(f"--nodes: {error}", hint="e.g. 'gpu[01-04]'") from error
    if not 0 < len(nodes) <= _MAX_NODES:
        raise UsageError(f"--nodes: {len(nodes)} nodes", hint=f"name 1 to {_MAX_NODES}")
    return [_checked_name("--nodes", name) for name in nodes]


def _addressed(names: list[str], first: str) -> tuple[Machine, ...]:
    address = _address("--first-address", first)
    try:
        return tuple(Machine(name, str(address + number)) for number, name in enumerate(names))
    except ValueError:
        raise UsageError(
            f"--first-address: {len(names)} addresses do not follow {first}",
            hint="begin lower",
        ) from None


def _group(names: list[str]) -> str:
    """Name the node group after the nodes: gpu01, gpu02 → gpu."""
    stems = {re.sub(r"[^A-Za-z]+$", "", name) for name in names}
    stem = re.sub(r"[^a-z0-9]+", "_", stems.pop().lower()) if len(stems) == 1 else ""
    taken = {*FEATURES, *names, "all", "ungrouped", "default"}
    return stem if stem and stem[0].isalpha() and stem not in taken else "compute"


def _distinct(machines: Iterable[Machine], what: str, key: Callable[[Machine], str]) -> None:
    seen: dict[str, str] = {}
    for machine in machines:
        if key(machine) in seen:
            raise UsageError(
                f"{seen[key(machine)]} and {machine.name} have the same {what}: {key(machine)}",
                hint=f"give each machine its own {what}",
            )
        seen[key(machine)] = machine.name
