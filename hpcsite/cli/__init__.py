"""The command line. Each command is a module of its own, imported only when it is called."""

import importlib
import os
import signal
import sys
import traceback
from typing import NoReturn

import click

from hpcsite import __version__
from hpcsite.cli import console
from hpcsite.errors import ExitCode, HpcsiteError, Problem

# Command name → what the list of commands says of it. The module is hpcsite.cli.<name>, the
# click command in it is called `command`.
COMMANDS = {
    "init": "Write a commented inventory to begin with: by questions, options or discovery.",
    "validate": "Check a site description: every mistake at once, before any host is touched.",
    "schema": "Print the JSON Schema of an inventory's variables, for editors.",
    "explain": "Say what a code of a mistake in a site description means, and what to do.",
    "lab": "Make, show, reset and remove the machines of a virtual site on this computer.",
    "image": "Build images of nodes, with all packages, for a lab or a site's own provisioning.",
    "render": "Write what a deploy would write, from the inventory alone, to review.",
    "plan": "Say what a deploy would change, from the machines as they are; change nothing.",
    "deploy": "Make the machines match the site description.",
    "verify": "Prove that the cluster works: run the verification suites.",
    "report": "Show a stored verification run again.",
}


class LazyGroup(click.Group):
    """A group whose commands are imported when called: `hpcsite -h` stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: D102
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: D102
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"hpcsite.cli.{cmd_name}")
        command = module.command
        if not isinstance(command, click.Command):
            msg = f"hpcsite.cli.{cmd_name}.command is not a click command"
            raise TypeError(msg)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: D102
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 ok, 1 a host or check failed, 2 usage, 3 invalid site description, "
    "4 could not run or reach, 70 a bug in hpcsite, 130 interrupted.",
)
@click.version_option(__version__, prog_name="hpcsite")
@click.option("--debug", is_flag=True, help="Show a traceback with an error.")
@click.pass_context
def cli(ctx: click.Context, *, debug: bool) -> None:
    """Turn bare servers into a Slurm GPU cluster, and prove that it is fast.

    \b
    Try it on this computer:
      hpcsite lab up inventory/lab
      hpcsite deploy inventory/lab
      hpcsite verify
    """
    ctx.obj = {"debug": debug}


def main() -> NoReturn:
    """Run the command line; the one place that catches errors and chooses the exit code."""
    debug = "--debug" in sys.argv
    try:
        code = cli.main(standalone_mode=False, prog_name="hpcsite")
        sys.exit(code if isinstance(code, int) else ExitCode.OK)
    except HpcsiteError as error:
        console.print_error(error)
        if debug:
            traceback.print_exc()
        sys.exit(error.exit_code)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(ExitCode.USAGE)
    except (KeyboardInterrupt, click.Abort):
        console.say("interrupted")
        sys.exit(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output went away (`hpcsite … | head`): no fault of ours, and Python
        # must not complain once more while it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except OSError as error:
        # Files, disks and rights of this computer: nothing that hpcsite's makers could mend.
        what = f"{error.filename}: " if error.filename else ""
        hint = "check the path and its permissions; `hpcsite --debug …` shows where it was used"
        console.print_problems([Problem(f"{what}{error.strerror or error}", hint=hint)])
        if debug:
            traceback.print_exc()
        sys.exit(ExitCode.COULD_NOT_RUN)
    except Exception as bug:  # noqa: BLE001 - the last resort: no traceback reaches a user
        console.print_bug(bug, debug=debug)
        sys.exit(ExitCode.BUG)
