"""`hpcsite explain`: what a code of a mistake means, and what to do about it."""

import json
import textwrap
from collections.abc import Iterable
from dataclasses import asdict

import click

from hpcsite.cli import console
from hpcsite.errors import ExitCode, UsageError
from hpcsite.site.codes import AREAS, CODES, PREFIX, Code, nearest_code

# Raised when a field changes its meaning or goes; new fields may come without.
SCHEMA = 1
_WIDTH = 80


@click.command()
@click.argument("code", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(code: str | None, *, as_json: bool) -> int:
    """Say what a CODE of `hpcsite validate` means, and what to do.

    Without a code, lists all of them.

    \b
    Example:
      hpcsite explain HPC1203
    """
    chosen = [_find(code)] if code else list(CODES.values())
    if as_json:
        click.echo(json.dumps({"schema": SCHEMA, "codes": [_fields(c) for c in chosen]}))
    else:
        text = _explained(chosen[0]) if code else _listed(chosen)
        console.stdout().print(text, markup=False)
    return ExitCode.OK


def _find(text: str) -> Code:
    """Find a code as people type it: in any case, without its letters, or in the brackets."""
    wanted = text.strip("[]").upper()
    wanted = wanted if wanted.startswith(PREFIX) else f"{PREFIX}{wanted}"
    found = CODES.get(wanted)
    if found is None:
        meant = nearest_code(wanted)
        raise UsageError(
            f"there is no code {text}",
            hint=f"did you mean {meant}?" if meant else "`hpcsite explain` lists all codes",
        )
    return found


def _fields(code: Code) -> dict[str, str | bool]:
    return {"code": code.number, "severity": code.severity, "area": AREAS[code.area]} | {
        name: value for name, value in asdict(code).items() if name not in ("number", "warning")
    }


def _explained(code: Code) -> str:
    parts = [_title(code), _wrapped("cause", code.cause), _wrapped("remedy", code.remedy)]
    if code.example:
        parts.append("example:\n" + textwrap.indent(code.example.rstrip(), "  "))
    return "\n\n".join(parts)


def _wrapped(label: str, text: str) -> str:
    return textwrap.fill(f"{label}: {text.strip()}", _WIDTH, break_on_hyphens=False)


def _title(code: Code) -> str:
    retired = " (no longer reported)" if code.retired else ""
    return f"{code.number} {code.severity}: {code.title}{retired}"


def _listed(codes: Iterable[Code]) -> str:
    """List codes below the titles of their areas."""
    lines: list[str] = []
    area = ""
    for code in codes:
        if code.area != area:
            area = code.area
            lines += ["", AREAS[area]] if lines else [AREAS[area]]
        lines.append(f"  {_title(code)}")
    return "\n".join(lines)
