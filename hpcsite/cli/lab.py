"""`hpcsite lab`: the machines of a virtual site on this computer."""

import json
import time
from dataclasses import asdict
from pathlib import Path

import click
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetParseError
from rich.table import Table

from hpcsite.cli import console
from hpcsite.errors import ExitCode, UsageError
from hpcsite.lab import lab, state, teardown
from hpcsite.lab.spec import LabSpec, lab_spec
from hpcsite.lab.status import LabStatus
from hpcsite.lab.status import status as lab_status
from hpcsite.site.load import load_site
from hpcsite.site.names import fold

_INVENTORY = click.argument("inventory", type=click.Path(path_type=Path), metavar="INVENTORY")


@click.group()
def command() -> None:
    """Make, show, reset and remove the machines of a virtual site on this computer.

    The machines are real Debian systems, described by an ordinary inventory with the key
    `site_lab`, and reached by ssh like any other host. Containers (`backend: nspawn`) need root,
    virtual machines (`backend: qemu`) do not.

    \b
    Example:
      hpcsite lab up inventory/lab
      hpcsite lab status inventory/lab
      hpcsite lab down inventory/lab
    """


@command.command()
@_INVENTORY
@click.option(
    "--rebuild", is_flag=True, help="Build the image anew, with today's packages, for new machines."
)
def up(inventory: Path, *, rebuild: bool) -> None:
    """Make the machines, or mend what is there; what runs well is left alone.

    \b
    Example:
      hpcsite lab up inventory/lab
    """
    began = time.monotonic()
    spec = _spec(inventory)
    warnings = lab.up(spec, console.say, rebuild=rebuild)
    console.print_problems(warnings, label="warning")
    _done(f"{_named(spec, None)}: up", began)


@command.command()
@_INVENTORY
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def status(inventory: Path, *, as_json: bool) -> int:
    """Show each machine, and what its kernel gives it. Exit code 0 if all answer, else 1.

    \b
    Example:
      hpcsite lab status inventory/lab
    """
    found = lab_status(_spec(inventory))
    if as_json:
        click.echo(json.dumps({"schema_version": 2, **asdict(found)}, indent=2))
    else:
        _print_status(found)
    return ExitCode.OK if found.ok else ExitCode.FAILED


@command.command()
@_INVENTORY
@click.argument("nodes", required=False, metavar="[NODES]")
def reset(inventory: Path, nodes: str | None) -> None:
    """Replace machines by fresh, bare ones; names, addresses and host keys stay.

    \b
    Example:
      hpcsite lab reset inventory/lab
      hpcsite lab reset inventory/lab gpu[01-02]
    """
    began = time.monotonic()
    spec = _spec(inventory)
    lab.reset(spec, _nodes(nodes), console.say)
    _done(f"{_named(spec, nodes)}: fresh", began)


@command.command()
@_INVENTORY
@click.argument("nodes", metavar="NODES")
def stop(inventory: Path, nodes: str) -> None:
    """Power machines off; their file systems stay.

    \b
    Example:
      hpcsite lab stop inventory/lab gpu02
    """
    began = time.monotonic()
    spec = _spec(inventory)
    lab.stop(spec, _nodes(nodes), console.say)
    _done(f"{_named(spec, nodes)}: off", began)


@command.command()
@_INVENTORY
@click.argument("nodes", metavar="NODES")
def start(inventory: Path, nodes: str) -> None:
    """Power machines on and wait until they answer.

    \b
    Example:
      hpcsite lab start inventory/lab gpu02
    """
    began = time.monotonic()
    spec = _spec(inventory)
    lab.start(spec, _nodes(nodes), console.say)
    _done(f"{_named(spec, nodes)}: up", began)


@command.command()
@_INVENTORY
def down(inventory: Path) -> None:
    """Remove the machines and all that was made for them; the caches stay.

    \b
    Example:
      hpcsite lab down inventory/lab
    """
    began = time.monotonic()
    path = inventory.resolve()
    # By the lab's own record first: an inventory that is broken now must not keep its lab alive.
    record = state.find_record(path)
    if record:
        name, backend = record.name, record.backend
    else:
        keys = load_site(inventory).keys
        name, backend = keys.name, keys.lab.backend if keys.lab else "nspawn"
    if teardown.down(name, path, backend, console.say):
        _done(f"lab {name}: removed", began)
    else:
        console.say(f"lab {name}: nothing to remove")


def _spec(inventory: Path) -> LabSpec:
    return lab_spec(load_site(inventory))


def _nodes(text: str | None) -> list[str]:
    if text is None:
        return []
    try:
        return [str(node) for node in NodeSet(text, resolver=RESOLVER_NOGROUP)]
    except NodeSetParseError as error:
        raise UsageError(
            f"{text} is no node set: {error}", hint="write it as Slurm does: gpu[01-02],login"
        ) from error


def _named(spec: LabSpec, nodes: str | None) -> str:
    names = _nodes(nodes) or [machine.name for machine in spec.machines]
    return fold(names)


def _done(what: str, began: float) -> None:
    console.say(f"{what} ({time.monotonic() - began:.1f} s)")


def _print_status(found: LabStatus) -> None:
    table = Table(box=None, pad_edge=False)
    for title in ("machine", "address", "state", "ssh"):
        table.add_column(title)
    for each in found.machines:
        style = "" if each.ssh else "bold red"
        ssh = "yes" if each.ssh else f"no: {each.trouble}" if each.trouble else "no"
        table.add_row(each.name, each.address, each.state, ssh, style=style)
    out = console.stdout()
    out.print(f"lab {found.name}, {found.network}, from {found.inventory}")
    out.print(table)
    out.print(found.nature.words)
