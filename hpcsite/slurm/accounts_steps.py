"""sacctmgr's commands that add and change QOS, accounts and users, with a line of text each."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter

from hpcsite.slurm.accounts_state import (
    ACCOUNT_FIELDS,
    ASSOCIATION_FIELDS,
    QOS_FIELDS,
    ROOT,
    WORD_FIELDS,
    AccountState,
    Field,
    Membership,
    Values,
    account_key,
    described,
    qos_key,
)

SACCTMGR = ("sacctmgr", "--immediate")
# Users who are added alike are added together, so many at a time.
_BATCH = 100


@dataclass(frozen=True)
class Step:
    """One command of sacctmgr's, and what it says to people."""

    text: str
    argv: tuple[str, ...]
    makes: tuple[str, ...] = ()
    """Keys of what it adds."""
    needs: tuple[str, ...] = ()
    """Keys without which it cannot be done; those that stand already are no matter."""
    removes: tuple[str, ...] = ()
    """Keys of what it removes. It waits until all else has been done without fault."""
    jobs: tuple[str, ...] = ()
    """Options of squeue that choose the jobs for whose sake it is left undone."""


def qos_steps(desired: AccountState, current: AccountState) -> Iterator[Step]:
    """Add and change QOS."""
    new = {name: values for name, values in desired.qos.items() if name not in current.qos}
    for name in _preempted_first(new):
        yield Step(
            text=_new(f"QOS {name}", described(QOS_FIELDS, new[name])),
            argv=(*SACCTMGR, "add", "qos", f"name={name}", *_settings(QOS_FIELDS, new[name])),
            makes=(qos_key(name),),
            needs=tuple(map(qos_key, _names(new[name], "Preempt"))),
        )
    for name, values in desired.qos.items():
        if name in current.qos:
            yield from _change(
                f"QOS {name}",
                ("modify", "qos", "where", f"name={name}"),
                (QOS_FIELDS, values, current.qos[name]),
                tuple(map(qos_key, _names(values, "Preempt"))),
            )


def account_steps(desired: AccountState, current: AccountState, cluster: str) -> Iterator[Step]:
    """Add and change accounts, those above before those below.

    Slurm from 23.11 to 25.05 writes a wrong lineage for what is below the accounts below one that
    moves, and then removes it together with accounts where it is no longer (fixed in 25.11, "set
    lineage on all affected associations"). So accounts move alone: those below wait under root.
    """
    waiting = _below_moved(desired, current)
    for name in waiting:
        yield _move(name, current.accounts[name]["Parent"], ROOT, cluster)
    current = replace(
        current,
        accounts={
            name: {**values, "Parent": ROOT} if name in waiting else values
            for name, values in current.accounts.items()
        },
    )
    yield from _accounts(desired, current, cluster)
    for name, parent in reversed(waiting.items()):
        if name not in desired.accounts and parent != ROOT:
            yield _move(name, ROOT, parent, cluster)


def _accounts(desired: AccountState, current: AccountState, cluster: str) -> Iterator[Step]:
    depths = account_depths(desired.accounts)
    for name in sorted(desired.accounts, key=lambda name: depths[name]):
        values = desired.accounts[name]
        where = ("where", f"name={name}", f"cluster={cluster}")
        needs = (account_key(values["Parent"]), *_needed_qos(values))
        words = [each for each in WORD_FIELDS if each.option in values]
        if before := current.accounts.get(name):
            yield from _change(
                f"account {name}",
                ("modify", "account", *where),
                (ACCOUNT_FIELDS, values, before),
                needs,
            )
        else:
            said = (f"below {values['Parent']}", *described(ASSOCIATION_FIELDS, values))
            settings = (*_settings(ACCOUNT_FIELDS, values), *_settings(words, values))
            yield Step(
                text=_new(f"account {name}", said),
                argv=(*SACCTMGR, "add", "account", *where[1:], *settings),
                makes=(account_key(name),),
                needs=needs,
            )
        # They belong to the account whatever the cluster: one that is in none, or in another, has
        # them already, and keeps them when it is added.
        if name in current.words:
            yield from _change(
                f"account {name}",
                ("modify", "account", *where[:2]),
                (words, values, current.words[name]),
                (account_key(name),),
            )


def membership_steps(desired: AccountState, current: AccountState, cluster: str) -> Iterator[Step]:
    """Add users to accounts and change their shares and limits, then their default accounts."""
    yield from _new_members(desired, current, cluster)
    for member, values in desired.memberships.items():
        if member in current.memberships:
            yield from _change(
                f"association {member}",
                ("modify", "user", "where", *membership_condition(member, current, cluster)),
                (ASSOCIATION_FIELDS, values, current.memberships[member]),
                _needed_qos(values),
            )
    known = {member.user for member in current.memberships}
    for user, account in desired.default_accounts.items():
        # The first account of a new user becomes the default one.
        before = current.default_accounts.get(user, "")
        if user in known and before != account:
            yield default_step(user, before, account, cluster)


def default_step(user: str, before: str, account: str, cluster: str) -> Step:
    """Give a user another default account."""
    return Step(
        text=f"user {user}: default_account {before or 'none'} -> {account}",
        argv=(
            *(*SACCTMGR, "modify", "user", "where", f"name={user}", f"cluster={cluster}"),
            *("set", f"DefaultAccount={account}"),
        ),
        needs=(account_key(account), Membership(user, account).key),
    )


def membership_condition(
    member: Membership, current: AccountState, cluster: str
) -> tuple[str, ...]:
    """Name one association; by its number, or that of all partitions would stand for each."""
    partition = (f"partition={member.partition}",) if member.partition else ()
    number = (f"id={current.ids[member]}",) if current.ids.get(member) else ()
    where = (f"name={member.user}", f"cluster={cluster}", f"account={member.account}")
    return (*where, *partition, *number)


def account_depths(accounts: Mapping[str, Values]) -> dict[str, int]:
    """Count how many of the accounts are above each."""
    depths: dict[str, int] = {}
    for name in accounts:
        path: list[str] = []
        at = name
        while at in accounts and at not in depths and at not in path:
            path.append(at)
            at = accounts[at].get("Parent", ROOT)
        base = depths.get(at, -1)
        depths |= {each: base + n for n, each in enumerate(reversed(path), start=1)}
    return depths


def _below_moved(desired: AccountState, current: AccountState) -> dict[str, str]:
    """Find the accounts below those that move, lowest first, with the account above each."""
    parents = {name: values["Parent"] for name, values in current.accounts.items()}
    moved = {
        name
        for name, values in desired.accounts.items()
        if name in parents and parents[name] != values["Parent"]
    }
    found: dict[str, str] = {}
    depths = account_depths(current.accounts) if moved else {}
    for name in sorted(depths, key=lambda name: -depths[name]):
        above, at = set(), parents[name]
        while at in parents and at not in above:
            above.add(at)
            at = parents[at]
        if above & moved:
            found[name] = parents[name]
    return found


def _move(name: str, before: str, after: str, cluster: str) -> Step:
    where = ("where", f"name={name}", f"cluster={cluster}")
    return Step(
        text=f"account {name}: parent {before} -> {after}",
        argv=(*SACCTMGR, "modify", "account", *where, "set", f"Parent={after}"),
    )


def _new_members(desired: AccountState, current: AccountState, cluster: str) -> Iterator[Step]:
    alike: dict[tuple[bool, str, str, tuple[tuple[str, str], ...]], list[str]] = {}
    for member, values in desired.memberships.items():
        if member not in current.memberships:
            further = desired.default_accounts.get(member.user) != member.account
            key = (further, member.account, member.partition, tuple(values.items()))
            alike.setdefault(key, []).append(member.user)
    # What makes the default account comes first; among those, what holds in all partitions.
    for key in sorted(alike, key=lambda key: (key[0], key[2] != "")):
        _, account, partition, pairs = key
        values = dict(pairs)
        for start in range(0, len(alike[key]), _BATCH):
            users = alike[key][start : start + _BATCH]
            where = f"{account}, partition {partition}" if partition else account
            yield Step(
                text=_new(
                    f"association {', '.join(users)} in {where}",
                    described(ASSOCIATION_FIELDS, values),
                ),
                argv=(
                    *(*SACCTMGR, "add", "user", f"name={','.join(users)}"),
                    *(f"cluster={cluster}", f"account={account}"),
                    *((f"partition={partition}",) if partition else ()),
                    *_settings(ASSOCIATION_FIELDS, values),
                ),
                makes=tuple(Membership(user, account, partition).key for user in users),
                needs=(account_key(account), *_needed_qos(values)),
            )


def _change(
    what: str,
    command: tuple[str, ...],
    of: tuple[Iterable[Field], Values, Values],
    needs: tuple[str, ...],
) -> Iterator[Step]:
    fields, new, old = of
    changed = [each for each in fields if new[each.option] != old.get(each.option, each.unset)]
    if changed:
        pairs = [(each, old.get(each.option, each.unset), new[each.option]) for each in changed]
        said = (f"{each.label} {each.shown(a)} -> {each.shown(b)}" for each, a, b in pairs)
        yield Step(
            text=f"{what}: {', '.join(said)}",
            argv=(*SACCTMGR, *command, "set", *(each.setting(b, a) for each, a, b in pairs)),
            needs=needs,
        )


def _new(what: str, said: Iterable[str]) -> str:
    return f"{what}: {', '.join(['new', *said])}"


def _settings(fields: Iterable[Field], values: Values) -> tuple[str, ...]:
    """Write what is set as arguments."""
    return tuple(
        each.setting(values[each.option], each.unset)
        for each in fields
        if values[each.option] != each.unset
    )


def _names(values: Values, option: str) -> list[str]:
    return [name for name in values[option].split(",") if name]


def _needed_qos(values: Values) -> tuple[str, ...]:
    return tuple(map(qos_key, [*_names(values, "QosLevel"), *_names(values, "DefaultQOS")]))


def _preempted_first(new: Mapping[str, Values]) -> list[str]:
    graph = {
        name: [other for other in _names(values, "Preempt") if other in new and other != name]
        for name, values in new.items()
    }
    try:
        return list(TopologicalSorter(graph).static_order())
    except CycleError:
        return list(new)  # slurmdbd says what it thinks of that
