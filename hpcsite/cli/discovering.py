"""`hpcsite init --discover`: a starter inventory from what hosts report."""

from pathlib import Path

from hpcsite.cli import console
from hpcsite.cli.init import Options, named, read
from hpcsite.discover import (
    Facts,
    Refusal,
    Roles,
    Ssh,
    ask_all,
    differences,
    node_names,
    propose,
)
from hpcsite.errors import CouldNotRunError, UsageError
from hpcsite.site.catalogue import load_catalogue
from hpcsite.site.connection import require_named_user
from hpcsite.site.names import fold
from hpcsite.site.starter import Starter, check_target, values

_MEASURED = ("nodes", "first_address", "gpus", "group", "rdma_mode", "rdma_interface", "rdma_speed")


def discovered(folder: Path, hosts: tuple[str, ...], options: Options, *, skip: bool) -> Starter:
    """Ask the hosts, say what differs between them, and make a starter inventory of them."""
    check_target(folder)
    given = next((name for name in _MEASURED if getattr(options, name)), None)
    if given:
        raise UsageError(
            f"--{given.replace('_', '-')} goes without --discover: the hosts say it themselves",
            hint="edit the files that are written",
        )
    targets = list(dict.fromkeys(t for text in hosts for t in read("HOST", values.node_set, text)))
    if not targets:
        raise UsageError("--discover needs hosts", hint="hpcsite init DIR --discover HOST...")
    name, users = named(folder, options.name), read("--users", values.users, options.users or "")
    ssh = Ssh(read("--user", values.login_name, options.user or "root"), options.ssh_args or "")
    require_named_user()
    console.say(f"asking {len(targets)} host{'s' if len(targets) != 1 else ''} what they have")
    asked = ask_all(targets, ssh)
    _refused([each for each in asked if isinstance(each, Refusal)], len(asked), skip=skip)
    answered = [each for each in asked if isinstance(each, Facts)]
    names = node_names(answered)
    further = options.nfs_server if options.nfs_server and "=" in options.nfs_server else None
    roles = Roles(
        options.head or targets[0],
        options.login,
        "" if further else options.nfs_server or "",
    )
    found = propose(answered, names, roles, load_catalogue())
    _say_differences(differences(answered, names))
    return Starter(
        name=name,
        head=found.head,
        logins=found.logins,
        groups=found.groups,
        nfs_server=read("--nfs-server", values.machine, further) if further else found.nfs_server,
        users=users,
        ssh_user=ssh.user,
        ssh_args=ssh.args,
        notes=tuple(
            f"It did not answer, and is left out: {each.target}"
            for each in asked
            if isinstance(each, Refusal)
        ),
    )


def _refused(refusals: list[Refusal], asked: int, *, skip: bool) -> None:
    """Name all hosts that did not answer, by the reason; end there, unless they are skipped."""
    if not refusals:
        return
    by_reason: dict[str, list[str]] = {}
    for each in refusals:
        by_reason.setdefault(each.reason, []).append(each.target)
    reasons = "".join(f"\n  {fold(who)}: {why}" for why, who in by_reason.items())
    message = f"{len(refusals)} of {asked} hosts did not answer:{reasons}"
    if not skip or len(refusals) == asked:
        raise CouldNotRunError(
            f"{message}\nnothing was written",
            hint="let `ssh HOST` work without a question: key, known host key (`ssh-keyscan`), "
            "--user, --ssh-args"
            + ("" if len(refusals) == asked else "; or go on without them by --skip-unreachable"),
        )
    console.say(message, style="yellow")


def _say_differences(said: list[tuple[str, str]]) -> None:
    if not said:
        return
    width = max(len(who) for who, _ in said)
    console.say("differs from most of those that are called so:", style="bold yellow")
    for who, what in said:
        console.say(f"  {who:{width}}  {what}")
