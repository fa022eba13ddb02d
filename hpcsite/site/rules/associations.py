"""Associations: users in accounts, both of whom the site describes, each once."""

from collections.abc import Iterator

from hpcsite.errors import Problem
from hpcsite.site.draft import Draft
from hpcsite.site.names import did_you_mean

_PARTS = {"user": "users", "account": "accounts", "partition": "partitions"}


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


RULES = (
    associations_have_ends,
    associations_are_distinct,
    associations_are_of_the_user_s_accounts,
)
