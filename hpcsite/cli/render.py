"""`hpcsite render`: the files of a whole site, from the inventory alone."""

from pathlib import Path

import click

from hpcsite.cli import console
from hpcsite.deploy.render import render_site, slurm_configuration, write_files
from hpcsite.site.load import load_site


@click.command(short_help="Write what a deploy would write, from the inventory alone, to review.")
@click.argument("inventory", type=click.Path(path_type=Path))
@click.option(
    "--out",
    metavar="DIR",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the files into this folder.",
)
def command(*, inventory: Path, out: Path) -> None:
    """Write what a deploy would write, as far as the inventory alone says it.

    That is slurm.conf, gres.conf, cgroup.conf and topology.conf, slurmdbd.conf, the exports of NFS
    servers, /etc/hosts and Slurm's accounts. No host is touched, and secrets are masked, so that
    the files can be reviewed and kept in git.

    \b
    Example:
      hpcsite render inventory/lab --out rendered
    """
    site = load_site(inventory)
    console.print_warnings(site.warnings)
    configuration = slurm_configuration(site)
    for name in write_files(render_site(site, configuration), out):
        click.echo(out / name)
    for problem in configuration.problems.values() if configuration else ():
        console.say(problem)
