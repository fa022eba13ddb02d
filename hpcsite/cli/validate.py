"""`hpcsite validate`: every mistake of a site description at once, before any host is touched."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from hpcsite.cli import console
from hpcsite.errors import ExitCode, InvalidSiteError, Problem
from hpcsite.site.codes import CODES
from hpcsite.site.load import load_site
from hpcsite.site.model import NodeGroup, Partition, Site
from hpcsite.site.names import fold

# Raised when a field changes its meaning or goes; new fields may come without.
SCHEMA = 1


@click.command()
@click.argument("inventory", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(inventory: Path, *, as_json: bool) -> int:
    """Check the site description in the folder INVENTORY.

    Reports every mistake at once, each with file and line, what to do, and a code that `hpcsite
    explain` tells more of. Reads the folder only; no host is touched. Exit code 3 if there is a
    mistake. Warnings, on stderr, do not make a site invalid; `site_acknowledged` accepts them.

    \b
    Example:
      hpcsite validate inventory/lab
    """
    try:
        site = load_site(inventory)
    except InvalidSiteError as error:
        if not as_json:
            raise
        click.echo(_as_json(error.problems, error.warnings))
        return ExitCode.INVALID_SITE
    if as_json:
        click.echo(_as_json([], site.warnings))
    else:
        console.print_warnings(site.warnings)
        console.stdout().print(_summary(inventory, site), markup=False)
    return ExitCode.OK


def _as_json(problems: list[Problem], warnings: Iterable[Problem]) -> str:
    """Write what is wrong, what is doubtful, and what of that the site accepts, and why."""
    result: dict[str, Any] = {
        "schema": SCHEMA,
        "valid": not problems,
        "problems": [_fields(problem) for problem in problems],
        "warnings": [],
        "acknowledged": [],
    }
    for warning in warnings:
        if warning.acknowledged:
            accepted = _fields(warning) | {"reason": warning.acknowledged}
            result["acknowledged"].append(accepted)
        else:
            result["warnings"].append(_fields(warning))
    return json.dumps(result)


def _fields(problem: Problem) -> dict[str, str | int | None]:
    where = problem.where
    return {
        "code": problem.code,
        "severity": CODES[problem.code].severity,
        "message": problem.message,
        "path": str(where.path) if where else None,
        "line": where.line or None if where else None,
        "key": problem.key,
        "host": problem.host,
        "hint": problem.hint,
    }


def _summary(inventory: Path, site: Site) -> str:
    """One line of verdict, then who is what."""
    lines = [f"{inventory}: valid: {_count(len(site.hosts), 'host')}"]
    lines += [
        _line(group.removeprefix("slurm_"), fold(host.name for host in hosts))
        for group in ("slurm_controller", "slurm_login")
        if (hosts := site.in_group(group))
    ]
    for name, node_group in site.keys.node_groups.items():
        nodes = fold(host.name for host in site.in_group(name))
        lines.append(_line("node group", f"{name}: {nodes}{_equipment(node_group)}"))
    lines.extend(_line("partition", _partition(site, p)) for p in site.keys.partitions)
    return "\n".join(lines)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _line(label: str, text: str) -> str:
    return f"  {label:<11} {text}"


def _equipment(group: NodeGroup) -> str:
    parts = []
    if group.hardware:
        parts += [f"{group.hardware.cpus} CPUs", f"{group.hardware.memory_mib} MiB"]
    if group.gpus:
        parts.append(_count(group.gpus.count, "GPU"))
    return f", each {', '.join(parts)}" if parts else ""


def _partition(site: Site, partition: Partition) -> str:
    nodes = fold(host.name for name in partition.node_groups for host in site.in_group(name))
    default = " (default)" if partition.default else ""
    return f"{partition.name}{default}: {nodes}, up to {partition.max_time}"
