"""`hpcsite plan`."""

from pathlib import Path

import click

from hpcsite.cli import console
from hpcsite.deploy.options import LAYERS
from hpcsite.deploy.plan.make import make_plan
from hpcsite.deploy.plan.store import check_writable, write_plan
from hpcsite.deploy.plan.text import plan_text
from hpcsite.deploy.progress import make_progress
from hpcsite.site.connection import require_key, require_named_user
from hpcsite.site.load import load_site


@click.command()
@click.argument("inventory", type=click.Path(path_type=Path))
@click.option(
    "--limit", metavar="NODES", help="Only these nodes and the controller: 'gpu[03-04],login'."
)
@click.option(
    "--tags", metavar="TAG,…", default="", help=f"Only these layers ({', '.join(LAYERS)}) or tags."
)
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Store the plan too, for `hpcsite deploy --plan FILE`.",
)
def command(
    *, inventory: Path, limit: str | None, tags: str, as_json: bool, out: Path | None
) -> int:
    """Say what a deploy would change, from the machines as they are; change nothing.

    Lists files with their differences, packages, daemons that would restart and why, nodes that
    need a drain or a reboot, running jobs at risk, and accounts. Secrets are left out.

    \b
    Examples:
      hpcsite plan inventory/lab
      hpcsite plan inventory/lab --out lab.plan && hpcsite deploy inventory/lab --plan lab.plan
    """
    require_named_user()
    if out is not None:
        check_writable(out)
    site = load_site(inventory)
    console.print_warnings(site.warnings)
    require_key(site)
    plan = make_plan(
        site,
        make_progress(console.stderr(), console.stderr(), verbosity=0),
        limit=limit,
        tags=tuple(tag.strip() for tag in tags.split(",") if tag.strip()),
    )
    if as_json:
        click.echo(plan.model_dump_json(indent=2))
    else:
        console.stdout().print(plan_text(plan, folder=Path.cwd()), end="")
    if out is not None and plan.status == "ok":
        write_plan(plan, out)
        console.say(f"stored in {out}")
    elif out is not None:
        console.say(f"not stored in {out}: the plan is not whole", style="bold yellow")
    return int(plan.exit_code)
