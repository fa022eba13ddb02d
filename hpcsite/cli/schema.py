"""`hpcsite schema`: the JSON Schema of an inventory's variables, for editors."""

import json
from pathlib import Path

import click

from hpcsite.cli import console
from hpcsite.site.schema import site_schema


@click.command(short_help="Print the JSON Schema of an inventory's variables, for editors.")
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), help="Write it to this file."
)
def command(*, out: Path | None) -> None:
    """Print the JSON Schema of an inventory's variables, for editors.

    With it, an editor completes the keys of group_vars and host_vars, explains them, and marks
    mistakes while you type. docs/inventory.md says how an editor is told of it.

    \b
    Example:
      hpcsite schema --out mysite/.site.schema.json
    """
    text = json.dumps(site_schema(), indent=2, ensure_ascii=False)
    if out is None:
        click.echo(text)
        return
    out.write_text(f"{text}\n", encoding="utf-8")
    console.say(f"wrote {out}")
