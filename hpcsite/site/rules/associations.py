"""Associations: users in accounts whom the site describes, each once; and what they may hold."""

from collections.abc import Iterator, Mapping

from hpcsite.errors import Problem
from hpcsite.site.draft import Draft
from hpcsite.site.names import did_you_mean
from hpcsite.site.sources import KeyPath
from hpcsite.slurm.tres import EXAMPLES, PLAIN, read_count, read_tres

_PARTS = {"user": "users", "account": "accounts", "partition": "partitions"}
# Keys that hold limits by TRES.
_LIMITS = {
    "qos": ("max_tres_per_user", "max_tres_per_job", "grp_tres"),
    "accounts": ("grp_tres", "max_tres_per_job"),
    "associations": ("grp_tres",),
}
# What people write for a TRES, and how Slurm calls it.
_MEANT = {
    **dict.fromkeys(("gpu", "gpus", "gres"), "gres/gpu"),
    **dict.fromkeys(("cpus", "core", "cores"), "cpu"),
    **dict.fromkeys(("memory", "ram"), "mem"),
    "nodes": "node",
}


def associations_have_ends(draft: Draft) -> Iterator[Problem]:
    """Check that the user, the account and the partition of an association are described."""
    known = {part: draft.names(key) for part, key in _PARTS.items()}
    absent = {user.name for _, user in draft.entries("users", "state") if user.state == "absent"}
    for number, entry in draft.entries("associations"):
        for part, key in _PARTS.items():
            name, names = getattr(entry, part), known[part]
            if name is None or names is None:
                continue
            if name not in names:
                yield draft.problem(
                    f"an association is of an unknown {part} {name}",
                    ("site_associations", number, part),
                    did_you_mean(name, names, f"add {name} to site_{key}"),
                    code="HPC1521",
                )
            elif part == "user" and name in absent:
                yield draft.problem(
                    f"an association is of the user {name}, who is to be absent",
                    ("site_associations", number, part),
                    "remove the association, or keep the user",
                    code="HPC1521",
                )


def associations_are_distinct(draft: Draft) -> Iterator[Problem]:
    """No user has two associations in one account and partition."""
    first: dict[tuple[str, str, str | None], int] = {}
    for number, entry in draft.entries("associations", "user", "account", "partition"):
        before = first.setdefault((entry.user, entry.account, entry.partition), number)
        if before != number:
            there = f" in the partition {entry.partition}" if entry.partition else ""
            yield draft.problem(
                f"the association of {entry.user} in {entry.account}{there} is described twice",
                ("site_associations", number),
                f"remove one of the two; the other is site_associations[{before}]",
                code="HPC1522",
            )


def associations_are_of_the_user_s_accounts(draft: Draft) -> Iterator[Problem]:
    """Each association is in an account that its user has."""
    accounts = {
        user.name: (number, user.accounts)
        for number, user in draft.entries("users", "name", "accounts")
        if user.state == "present"
    }
    known = draft.names("accounts")
    for number, entry in draft.entries("associations", "user", "account"):
        its = accounts.get(entry.user)
        if its and entry.account not in its[1] and known is not None and entry.account in known:
            yield draft.problem(
                f"an association is in {entry.account}, which {entry.user} does not have",
                ("site_associations", number, "account"),
                f"add {entry.account} to accounts of site_users[{its[0]}], or name one of "
                f"{', '.join(its[1]) or 'those that it has'}",
                code="HPC1523",
            )


def limits_are_of_tres(draft: Draft) -> Iterator[Problem]:
    """Limits are of TRES that Slurm knows, and only sizes have units."""
    for key, names in _LIMITS.items():
        for number, entry in draft.entries(key):
            for name in names:
                path: KeyPath = (f"site_{key}", number, name)
                yield from _limits(draft, path, getattr(entry, name))


def _limits(
    draft: Draft, path: KeyPath, limits: Mapping[str, int | str] | None
) -> Iterator[Problem]:
    for text, count in (limits or {}).items():
        tres = read_tres(text)
        if tres is None:
            meant = _MEANT.get(text)
            yield draft.problem(
                f"Slurm knows no TRES {text}",
                (*path, text),
                f"did you mean {meant}?"
                if meant
                else did_you_mean(text, (*PLAIN, "gres/gpu"), f"known are {EXAMPLES}"),
                code="HPC1516",
            )
        elif read_count(tres, count) is None:
            yield draft.problem(
                f"{count} is no number of {text}: only sizes have units",
                (*path, text),
                "write a whole number",
                code="HPC1517",
            )


RULES = (
    associations_have_ends,
    associations_are_distinct,
    associations_are_of_the_user_s_accounts,
    limits_are_of_tres,
)
