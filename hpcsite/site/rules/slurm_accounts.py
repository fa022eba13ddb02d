"""Accounts of Slurm's accounting: a tree, and users who have one."""

from collections.abc import Iterator

from hpcsite.errors import Problem
from hpcsite.site.draft import Draft
from hpcsite.site.names import did_you_mean
from hpcsite.site.sources import KeyPath

ROOT = "root"
# Slurm makes this QOS itself.
_NORMAL = "normal"
_ENFORCE = "accountingstorageenforce"
# slurm.conf(5): each of these implies that a job needs an association.
_NEED_ACCOUNT = frozenset(("all", "associations", "limits", "qos", "safe", "wckeys"))
_NAMED = 3


def accounts_are_distinct(draft: Draft) -> Iterator[Problem]:
    """No account is described twice, and none is Slurm's own."""
    first: dict[str, int] = {}
    for number, account in draft.entries("accounts", "name"):
        path: KeyPath = ("site_accounts", number, "name")
        if account.name == ROOT:
            yield draft.problem(
                "the account root is Slurm's own",
                path,
                "choose another name; accounts without a parent are below root anyway",
                code="HPC1511",
            )
        before = first.setdefault(account.name, number)
        if before != number:
            yield draft.problem(
                f"the account {account.name} is described twice",
                path,
                f"remove one of the two; the other is site_accounts[{before}]",
                code="HPC1510",
            )


def accounts_have_parents(draft: Draft) -> Iterator[Problem]:
    """Each parent is described, or root."""
    names = draft.names("accounts")
    if names is None:
        return
    known = {*names, ROOT}
    for number, account in draft.entries("accounts", "parent"):
        if account.parent not in known:
            yield draft.problem(
                f"the account {draft.called('accounts', number)} is below an unknown account "
                f"{account.parent}",
                ("site_accounts", number, "parent"),
                did_you_mean(account.parent, known, f"add {account.parent} to site_accounts"),
                code="HPC1512",
            )


def accounts_are_a_tree(draft: Draft) -> Iterator[Problem]:
    """No account is above itself; each ring of accounts is one mistake."""
    entries = list(draft.entries("accounts", "name", "parent"))
    parents = {account.name: account.parent for _, account in entries if account.name != ROOT}
    settled: set[str] = set()
    for _, account in entries:
        way: dict[str, None] = {}
        name = account.name
        while name in parents and name not in settled and name not in way:
            way[name] = None
            name = parents[name]
        if name in way:
            ring = list(way)[list(way).index(name) :]
            start = next(n for n, each in entries if each.name in ring)
            yield draft.problem(
                f"accounts are above each other in a ring: {' is below '.join((*ring, name))}",
                ("site_accounts", start, "parent"),
                "give one of them another parent, or none",
                code="HPC1513",
            )
        settled.update(way)


def qos_are_known(draft: Draft) -> Iterator[Problem]:
    """Each QOS of an account or association is described, and the default one is among them."""
    names = draft.names("qos")
    for key in ("accounts", "associations"):
        for number, entry in draft.entries(key, "qos", "default_qos"):
            path: KeyPath = (f"site_{key}", number)
            known = None if names is None else {*names, _NORMAL}
            for index, qos in draft.numbered((*path, "qos"), entry.qos):
                if known is not None and qos not in known:
                    yield _unknown_qos(draft, (*path, "qos", index), qos, known)
            default = entry.default_qos
            if default is None:
                continue
            if entry.qos and default not in entry.qos:
                yield draft.problem(
                    f"the default QOS {default} is not among {', '.join(entry.qos)}",
                    (*path, "default_qos"),
                    f"add {default} to qos, or choose one of these",
                    code="HPC1515",
                )
            elif not entry.qos and known is not None and default not in known:
                yield _unknown_qos(draft, (*path, "default_qos"), default, known)


def _unknown_qos(draft: Draft, path: KeyPath, qos: str, known: set[str]) -> Problem:
    hint = did_you_mean(qos, known, f"add {qos} to site_qos")
    return draft.problem(f"unknown QOS {qos}", path, hint, code="HPC1514")


def users_have_known_accounts(draft: Draft) -> Iterator[Problem]:
    """Each account of a user is described, and the default one is among them."""
    names = draft.names("accounts")
    for number, user in draft.entries("users", "accounts", "default_account"):
        called = draft.called("users", number)
        path: KeyPath = ("site_users", number)
        for index, account in draft.numbered((*path, "accounts"), user.accounts):
            if names is not None and account not in names:
                yield draft.problem(
                    f"the user {called} has an unknown account {account}",
                    (*path, "accounts", index),
                    did_you_mean(account, names, f"add {account} to site_accounts"),
                    code="HPC1518",
                )
        if user.default_account is not None and user.default_account not in user.accounts:
            yield draft.problem(
                f"the default account {user.default_account} of {called} is none of the user's",
                (*path, "default_account"),
                f"add `accounts:` with {user.default_account} to the user"
                if not user.accounts
                else f"add it to accounts, or choose one of {', '.join(user.accounts)}",
                code="HPC1519",
            )


def users_have_accounts(draft: Draft) -> Iterator[Problem]:
    """Doubt users whom Slurm would refuse: with accounts, each job needs one."""
    if not draft.raw.get("site_accounts") or _enforced(draft) is False:
        return
    placed = {entry.user for _, entry in draft.entries("associations", "user")}
    without = [
        (number, user.name)
        for number, user in draft.entries("users", "name", "accounts", "default_account", "state")
        if user.state == "present" and not user.accounts and user.name not in placed
        # This one is given an account of its own.
        if user.name != draft.keys.verify_user
    ]
    if without:
        names = [name for _, name in without]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        one = len(names) == 1
        yield draft.problem(
            f"{', '.join(names[:_NAMED])}{more} {'has' if one else 'have'} no account, "
            f"and can{'' if one else ' all'} submit no job",
            ("site_users", without[0][0], "name"),
            "add `accounts:` with one of site_accounts to each who is to run jobs",
            code="HPC1520",
        )


def verification_has_an_account(draft: Draft) -> Iterator[Problem]:
    """Doubt verification where Slurm asks for accounts that the site does not describe."""
    described = any(draft.raw.get(f"site_{key}") for key in ("accounts", "associations", "qos"))
    user = draft.keys.verify_user
    if user is None or described or not _enforced(draft):
        return
    mine = [each for _, each in draft.entries("users", "name") if each.name == user]
    if not any(each.accounts or each.default_account for each in mine):
        yield draft.problem(
            f"Slurm refuses jobs without an account, and {user}, who runs verification, has none",
            ("site_verify_user",),
            "describe accounts in site_accounts, and name one in `accounts` of the user; if they "
            "are made by hand, acknowledge this",
            code="HPC1524",
        )


def _enforced(draft: Draft) -> bool | None:
    """Whether free parameters say that a job needs an account; None where they say nothing."""
    for name, value in draft.keys.slurm_parameters.items():
        if name.lower() == _ENFORCE:
            words = {word.strip() for word in str(value or "").lower().split(",")}
            return not words.isdisjoint(_NEED_ACCOUNT)
    return None


RULES = (
    accounts_are_distinct,
    accounts_have_parents,
    accounts_are_a_tree,
    qos_are_known,
    users_have_known_accounts,
    users_have_accounts,
    verification_has_an_account,
)
