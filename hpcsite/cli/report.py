"""`hpcsite report`: show a stored verification run again."""

import sys

import click

from hpcsite import report
from hpcsite.cli import console
from hpcsite.verify import store


@click.command(short_help="Show a stored verification run again.")
@click.argument("run", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "html", "junit", "json"]),
    default="text",
    show_default=True,
    help="How to show it.",
)
@click.option("--site", help="The last run of this site, by its name.")
def command(run: str | None, *, form: str, site: str | None) -> None:
    """Show a stored verification run again; the last one without RUN.

    RUN is a run's id, the beginning of one, or its folder. Ends with 0 whatever the run found.

    \b
    hpcsite report
    hpcsite report 20261130-1209 --format html > page.html
    """
    folder = store.find(run, site)
    stored = store.load(folder)
    if form == "text":
        report.text(stored, console.stdout())
        console.say(f"page  {folder / 'report.html'}\nraw   {folder / 'raw'}")
        return
    rendered = {
        "html": lambda: report.html(stored, f"{folder.absolute().as_uri()}/"),
        "junit": lambda: report.junit(stored),
        "json": lambda: stored.model_dump_json(indent=2) + "\n",
    }
    sys.stdout.write(rendered[form]())
