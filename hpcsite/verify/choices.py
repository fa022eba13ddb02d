"""Whether Slurm knows the partition, account, QOS and reservation that a run is to use.

Slurm itself judges: what it takes depends on more than names (AccountingStorageEnforce, the
user's associations). Each check would be refused alike, so it is one mistake in the command.
"""

import re
from collections.abc import Sequence

from hpcsite.errors import UsageError
from hpcsite.verify.context import Context
from hpcsite.verify.jobs import sbatch

# What Slurm says (slurm_errno.c), what to ask for what there is, and what of it is a name.
_KINDS = {
    "partition": (
        re.compile(r"(?i)invalid partition (?:name )?specified"),
        ["sinfo", "--noheader", "--format=%R"],
        r"^(\S+)$",
    ),
    "reservation": (
        re.compile(r"Requested reservation is invalid|reservation does not exist"),
        ["scontrol", "show", "reservations", "--oneliner"],
        r"^ReservationName=(\S+)",
    ),
    "account": (
        re.compile(r"Invalid account"),
        ["sacctmgr", "--noheader", "--parsable2", "show", "associations", "format=Account"],
        r"^(\S+)$",
    ),
    "qos": (
        re.compile(r"(?i)invalid qos specification"),
        ["sacctmgr", "--noheader", "--parsable2", "show", "associations", "format=QOS"],
        r"([^\s,]+)",
    ),
}


def require_known(context: Context) -> None:
    """Raise `UsageError` if Slurm refuses a job for what the user chose, with what there is."""
    flags = context.options.flags(None)
    if not flags:
        return
    # Nothing is submitted. Whatever else Slurm says is for the checks to find.
    argv = [*sbatch(["--test-only", "--time=1", "--mem=64M", *flags], "true")]
    said = context.user(argv, "choices").stderr
    for kind, (refused, lister, name) in _KINDS.items():
        value = getattr(context.options, kind)
        if value and refused.search(said):
            raise _unknown(context, kind, value, _names(context, kind, lister, name))


def _names(context: Context, kind: str, lister: Sequence[str], name: str) -> list[str]:
    own = ["where", f"user={context.core.user}"] if lister[0] == "sacctmgr" else []
    answer = context.user([*lister[:-1], *own, lister[-1]] if own else lister, f"{kind}s")
    return sorted(set(re.findall(name, answer.stdout, re.MULTILINE))) if answer.ok else []


def _unknown(context: Context, kind: str, value: str, names: Sequence[str]) -> UsageError:
    user = context.core.user
    if kind in ("account", "qos"):
        word = "QOS" if kind == "qos" else kind
        there = f"; {user} has: {', '.join(names)}" if names else ""
        return UsageError(
            f"{user} cannot use {word} {value}{there}",
            hint=f"choose one with --{kind}; `sacctmgr show associations user={user}` shows all",
        )
    there = f"there are: {', '.join(names)}" if names else "there is none"
    return UsageError(
        f"no {kind} {value}; {there}",
        hint=f"choose one with --{kind}, or leave it out for Slurm's default",
    )
