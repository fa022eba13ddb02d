"""`hpcsite deploy`."""

import json
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console

from hpcsite import report
from hpcsite.cli import console
from hpcsite.cli.verifying import ended_like_interrupt, listener
from hpcsite.deploy.deploy import deploy
from hpcsite.deploy.features import not_applied, require_deployed_features
from hpcsite.deploy.lock import site_lock
from hpcsite.deploy.options import LAYERS, Options
from hpcsite.deploy.outcome import Outcome
from hpcsite.deploy.plan.make import make_plan
from hpcsite.deploy.plan.store import read_plan, require_unmoved
from hpcsite.deploy.progress import make_progress
from hpcsite.deploy.recap import recap
from hpcsite.errors import ExitCode, HpcsiteError, UsageError
from hpcsite.site.connection import require_key, require_named_user
from hpcsite.site.load import load_site
from hpcsite.site.model import Site
from hpcsite.verify.results import Run
from hpcsite.verify.runner import run_suites


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
@click.option(
    "--rotate-munge-key", is_flag=True, help="Make a new munge key and give it to all hosts."
)
@click.option("--no-verify", is_flag=True, help="Skip the short verification at the end.")
@click.option(
    "--plan",
    "plan_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Only if what `hpcsite plan --out FILE` found still holds, with its limit and tags.",
)
def command(
    *,
    inventory: Path,
    limit: str | None,
    tags: str,
    check: bool,
    diff: bool,
    verbose: int,
    as_json: bool,
    rotate_munge_key: bool,
    no_verify: bool,
    plan_file: Path | None,
) -> int:
    """Make the machines match the site description; a second run changes nothing.

    A node that cannot be reached or fails is left out, and the others go on. Running jobs are
    left alone. Ends with a recap and a short verification (suite smoke).

    \b
    Examples:
      hpcsite deploy inventory/lab
      hpcsite deploy inventory/lab --check --diff
      hpcsite deploy inventory/lab --plan lab.plan
      hpcsite deploy inventory/lab --limit 'gpu[03-04]'
    """
    require_named_user()
    if plan_file and (limit or tags or check or rotate_munge_key):
        raise UsageError(
            "--plan does not go with --limit, --tags, --check or --rotate-munge-key",
            hint="the plan says what is deployed; give --limit and --tags to `hpcsite plan`",
        )
    site = load_site(inventory)
    console.print_warnings(site.warnings)
    require_deployed_features(site)
    if left := not_applied(site):
        console.say(left)
    require_key(site)
    options = Options(
        limit=limit,
        tags=tuple(tag.strip() for tag in tags.split(",") if tag.strip()),
        check=check,
        diff=diff,
        verbosity=verbose,
        rotate_munge_key=rotate_munge_key,
    )
    out = console.stderr() if as_json else console.stdout()
    # Nobody deploys between the look at a plan and the deploy of it.
    with site_lock(site.name):
        if plan_file:
            options = _planned(site, options, plan_file)
        outcome = deploy(site, options, make_progress(console.stderr(), out, verbosity=verbose))
    out.print(recap(outcome, folder=Path.cwd()), end="")
    run: Run | None = None
    error: BaseException | None = None
    try:
        if not no_verify and _worth_verifying(site, outcome, options):
            run = _verify(site, out)
    except (HpcsiteError, KeyboardInterrupt) as caught:
        error = caught
    if as_json:
        click.echo(_json(outcome, run, error))
    if error:
        raise error
    return int(run.exit_code) if run else outcome.exit_code


def _planned(site: Site, options: Options, plan_file: Path) -> Options:
    """Take a plan's limit and tags over. Raises `FailedError` when the plan does not hold."""
    plan = read_plan(plan_file, site)
    console.say(f"looking whether the plan {plan_file} still holds")
    progress = make_progress(console.stderr(), console.stderr(), verbosity=0)
    require_unmoved(plan, make_plan(site, progress, limit=plan.limit, tags=plan.tags), plan_file)
    return replace(options, limit=plan.limit, tags=plan.tags)


def _json(outcome: Outcome, run: Run | None, error: BaseException | None) -> str:
    """Write the outcome, with the verification or the reason why there is none."""
    verification = {
        "verification": run.model_dump(mode="json") if run else None,
        "verification_error": (str(error) or "interrupted") if error else None,
    }
    return json.dumps(outcome.model_dump(mode="json") | verification, indent=2)


def _worth_verifying(site: Site, outcome: Outcome, options: Options) -> bool:
    """Tell whether a verification says anything: a check, for one, deploys nothing."""
    scheduler = not options.tags or "scheduler" in options.tags
    if outcome.exit_code != ExitCode.OK or options.check or not scheduler:
        return False
    if site.keys.verify_user is None:
        console.say("not verified: the site names no ordinary user, site_verify_user")
        return False
    return True


def _verify(site: Site, out: Console) -> Run:
    with ended_like_interrupt(), listener() as progress:
        run = run_suites(site, ("smoke",), listener=progress)
    report.text(run, out)
    return run
