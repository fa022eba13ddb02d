"""`hpcsite deploy`."""

from pathlib import Path

import click

from hpcsite.cli import console
from hpcsite.deploy.deploy import deploy
from hpcsite.deploy.options import LAYERS, Options
from hpcsite.deploy.outcome import Outcome
from hpcsite.deploy.progress import make_progress
from hpcsite.deploy.recap import recap
from hpcsite.errors import ExitCode
from hpcsite.site.load import load_site


@click.command()
@click.argument("inventory", type=click.Path(path_type=Path))
@click.option(
    "--limit", metavar="NODES", help="Only these nodes and the controller: 'gpu[03-04],login'."
)
@click.option(
    "--tags", metavar="TAG,…", default="", help=f"Only these layers ({', '.join(LAYERS)}) or tags."
)
@click.option("--check", is_flag=True, help="Say what would change; change nothing.")
@click.option("--diff", is_flag=True, help="Show how files change.")
@click.option("-v", "--verbose", count=True, help="Show Ansible's own output; -vv, -vvv: more.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
@click.option("--no-verify", is_flag=True, help="Skip the short verification at the end.")
def command(
    *,
    inventory: Path,
    limit: str | None,
    tags: str,
    check: bool,
    diff: bool,
    verbose: int,
    as_json: bool,
    no_verify: bool,
) -> int:
    """Make the machines match the site description; a second run changes nothing.

    A node that cannot be reached or fails is left out, and the others go on. Running jobs are
    left alone. Ends with a recap and a short verification.

    \b
    Examples:
      hpcsite deploy inventory/lab
      hpcsite deploy inventory/lab --check --diff
      hpcsite deploy inventory/lab --limit 'gpu[03-04]'
    """
    site = load_site(inventory)
    options = Options(
        limit=limit,
        tags=tuple(tag.strip() for tag in tags.split(",") if tag.strip()),
        check=check,
        diff=diff,
        verbosity=verbose,
    )
    outcome = deploy(site, options, make_progress(console.stderr(), verbosity=verbose))
    out = console.stderr() if as_json else console.stdout()
    out.print(recap(outcome, folder=Path.cwd()), end="")
    if as_json:
        click.echo(outcome.model_dump_json(indent=2))
    return outcome.exit_code


def _worth_verifying(outcome: Outcome, options: Options) -> bool:
    """Tell whether a verification says anything: a check, for one, deploys nothing."""
    layers = not options.tags or "scheduler" in options.tags
    return outcome.exit_code == ExitCode.OK and not options.check and layers
