"""`hpcsite verify`: run verification suites and say what they found."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from hpcsite import report
from hpcsite.cli import console
from hpcsite.cli.verifying import ended_like_interrupt, listener
from hpcsite.errors import UsageError
from hpcsite.site.connection import require_key, require_named_user
from hpcsite.site.load import load_site
from hpcsite.site.record import last_site_path
from hpcsite.verify import store
from hpcsite.verify.context import Options
from hpcsite.verify.results import Run
from hpcsite.verify.runner import run_suites
from hpcsite.verify.suites import DEFAULT_SUITES, SUITES, nearest


def split_words(words: Sequence[str]) -> tuple[Path | None, list[str]]:
    """Return an inventory, if the first word is one, and the suites.

    A word with a slash, or the name of something that exists, is an inventory. Raises
    `UsageError` for a word that is neither that nor a suite.
    """
    inventory: Path | None = None
    suites = []
    for position, word in enumerate(words):
        if word in SUITES:
            suites.append(word)
        elif position == 0 and ("/" in word or Path(word).exists()):
            inventory = Path(word)
        else:
            raise UsageError(
                f"{word} is neither a suite nor an inventory folder", hint=nearest(word, SUITES)
            )
    return inventory, suites


def print_list() -> None:
    """Print all suites and their checks."""
    screen = console.stdout()
    for suite, checks in SUITES.items():
        note = "" if suite in DEFAULT_SUITES else "  (only when named)"
        screen.print(f"{suite}{note}", markup=False)
        for check in checks:
            screen.print(f"  {check.name:<14} {check.about}", markup=False)


def _write(run: Run, html: Path | None, junit: Path | None) -> Path:
    """Store what is rendered from a run beside it, and where the user wants it."""
    folder = store.folder_of(run)
    xml = report.junit(run)
    store.save_text(folder / "report.html", report.html(run))
    store.save_text(folder / "junit.xml", xml)
    if html:
        store.save_text(html.absolute(), report.html(run, f"{folder.as_uri()}/"))
    if junit:
        store.save_text(junit.absolute(), xml)
    return folder


@click.command(short_help="Prove that the cluster works.")
@click.argument("words", metavar="[INVENTORY] [SUITE]...", nargs=-1)
@click.option("--list", "list_only", is_flag=True, help="List suites and checks, run nothing.")
@click.option(
    "--check", "checks", multiple=True, metavar="NAME", help="Only this check; repeatable."
)
@click.option("--json", "as_json", is_flag=True, help="Print the run as JSON on stdout.")
@click.option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), help="Also write the page here."
)
@click.option(
    "--junit", type=click.Path(path_type=Path, dir_okay=False), help="Also write JUnit here."
)
@click.option("--partition", help="Submit to this partition; only its nodes are verified.")
@click.option("--account", help="Submit under this account.")
@click.option("--qos", help="Submit under this QOS.")
@click.option("--reservation", help="Submit into this reservation.")
@click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(1, 86400),
    default=30.0,
    show_default=True,
    help="Seconds that a job may wait for nodes that others use.",
)
def command(
    words: tuple[str, ...],
    *,
    list_only: bool,
    checks: tuple[str, ...],
    as_json: bool,
    html: Path | None,
    junit: Path | None,
    partition: str | None,
    account: str | None,
    qos: str | None,
    reservation: str | None,
    wait_s: float,
) -> int:
    """Prove that the cluster works: run the verification suites.

    Without INVENTORY, the site that was deployed last; without SUITE, node, slurm and mpi. Checks
    run as the site's ordinary user (site_verify_user), through Slurm, from a login node. Each ends
    as PASS, FAIL, SKIP or ERROR; what could not be measured is an ERROR.

    \b
    hpcsite verify
    hpcsite verify inventory/lab slurm
    hpcsite verify --check gpu_fill --json

    Exit codes: 0 all passed, 1 a check failed, 4 a check or all could not be run, 130 interrupted.
    """
    if list_only:
        print_list()
        return 0
    for path in (html, junit):
        if path and not path.absolute().parent.is_dir():
            raise UsageError(f"there is no folder {path.parent}", hint="make it first")
    require_named_user()
    inventory, suites = split_words(words)
    site = load_site(inventory or last_site_path())
    require_key(site)
    options = Options(partition, account, qos, reservation, wait_s)
    with ended_like_interrupt(), listener() as progress:
        run = run_suites(site, suites, checks=checks, options=options, listener=progress)
    folder = _write(run, html, junit)
    if as_json:
        sys.stdout.write(run.model_dump_json(indent=2) + "\n")
    else:
        screen = console.stdout()
        report.text(run, screen)
        console.say(f"page  {folder / 'report.html'}\nraw   {folder / 'raw'}")
    return int(run.exit_code)
