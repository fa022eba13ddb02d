"""What slurmdbd has now: the questions to sacctmgr, and its answers. Pure.

`--parsable2` with a named format gives the same text in every release from 22.05, which `--json`
does not: its shape changes with the release's data_parser. `WOPLimits` shows what is set at each
place, without what comes down from the accounts above.
"""

from collections.abc import Iterable, Iterator, Mapping

from hpcsite.slurm.accounts_state import (
    ACCOUNT_FIELDS,
    ASSOCIATION_FIELDS,
    QOS_FIELDS,
    WORD_FIELDS,
    AccountState,
    Field,
    Membership,
    Values,
)

SHOW = ("sacctmgr", "--noheader", "--parsable2", "show")
_WHO = ("Cluster", "Account", "User", "Partition", "ID", "ParentName")


def account_listings(cluster: str) -> dict[str, list[str]]:
    """Ask for everything that `read_state` reads, by the name under which it wants the answer."""
    return {
        "qos": [*SHOW, "qos", f"format={','.join(['Name', *_columns(QOS_FIELDS)])}"],
        "accounts": [*SHOW, "account", f"format={','.join(['Account', *_columns(WORD_FIELDS)])}"],
        "associations": [
            *(*SHOW, "associations", "WOPLimits"),
            f"format={','.join([*_WHO, *_columns(ASSOCIATION_FIELDS)])}",
        ],
        "users": [*SHOW, "user", f"cluster={cluster}", "format=User,DefaultAccount"],
    }


def read_state(answers: Mapping[str, str], cluster: str) -> AccountState:
    """Read the answers. Accounts and users are those of the cluster, by its associations."""
    words = {name: _values(WORD_FIELDS, rest) for name, *rest in _rows(answers.get("accounts", ""))}
    elsewhere: set[str] = set()
    accounts: dict[str, Values] = {}
    memberships: dict[Membership, Values] = {}
    ids: dict[Membership, str] = {}
    for row in _rows(answers.get("associations", "")):
        where, account, user, partition, number, parent, *rest = row
        values = _values(ASSOCIATION_FIELDS, rest)
        if where != cluster:
            elsewhere.add(account)
        elif user:
            member = Membership(user, account, partition)
            memberships[member] = values
            ids[member] = number
        else:
            above = _values(ACCOUNT_FIELDS[:1], [parent])
            accounts[account] = {**above, **values, **words.get(account, {})}
    return AccountState(
        qos={name: _values(QOS_FIELDS, rest) for name, *rest in _rows(answers.get("qos", ""))},
        accounts=accounts,
        memberships=memberships,
        default_accounts={user: rest[0] for user, *rest in _rows(answers.get("users", "")) if rest},
        ids=ids,
        words=words,
        elsewhere=frozenset(elsewhere),
    )


def _columns(fields: Iterable[Field]) -> list[str]:
    return [each.column or each.option for each in fields]


def _values(fields: Iterable[Field], columns: Iterable[str]) -> Values:
    return {each.option: each.canonical(text) for each, text in zip(fields, columns, strict=False)}


def _rows(text: str) -> Iterator[list[str]]:
    return (line.split("|") for line in text.splitlines() if line.strip())
