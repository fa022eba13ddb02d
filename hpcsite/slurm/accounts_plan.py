"""From what a site declares and what slurmdbd has to sacctmgr's commands, in order. Pure.

QOS come first, then accounts from the top down, users, default accounts, and removals last. What
the site does not declare is left alone: only what hpcsite itself made is ever removed, and users
who are to be absent.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from hpcsite.slurm.accounts_removal import (
    Undeclared,
    emptied_accounts,
    of_absent_users,
    of_own_making,
    removal_steps,
)
from hpcsite.slurm.accounts_state import (
    WORD_FIELDS,
    AccountState,
    Membership,
    Values,
    account_key,
    qos_key,
    state_text,
)
from hpcsite.slurm.accounts_steps import Step, account_steps, membership_steps, qos_steps


@dataclass(frozen=True)
class AccountPlan:
    """What is to be done, and what it changes."""

    steps: tuple[Step, ...] = ()
    left: tuple[str, ...] = ()
    """What hpcsite made and leaves although the site declares it no more, a sentence each."""
    before: str = ""
    """What of the declared stands now, and what will be removed."""
    after: str = ""
    standing: tuple[str, ...] = field(default=())
    """Keys of what hpcsite made and what still stands."""


def plan_accounts(
    desired: AccountState,
    current: AccountState,
    cluster: str,
    *,
    made: Collection[str] = (),
    absent: Collection[str] = (),
    prune: bool = False,
) -> AccountPlan:
    """Plan the way from what stands to what is wanted.

    `made` are the keys of what earlier runs made; `absent` are users whom the site has declared
    absent. With `prune`, what hpcsite made and the site no longer declares is removed.
    """
    own = of_own_making(desired, current, frozenset(made))
    gone = of_absent_users(desired, current, frozenset(absent))
    if prune:
        members = dict.fromkeys([*gone.memberships, *own.memberships])
        gone = Undeclared(tuple(members), own.accounts, own.qos)
    accounts = emptied_accounts(desired, current, gone)
    steps = (
        *qos_steps(desired, current),
        *account_steps(desired, current, cluster),
        *membership_steps(desired, current, cluster),
        *removal_steps(desired, current, gone, cluster),
    )
    removed = Undeclared(gone.memberships, accounts, gone.qos)
    before = _scope(current, desired, removed)
    return AccountPlan(
        steps=steps,
        left=tuple(_left(own, gone, accounts, prune=prune)),
        before=state_text(before),
        after=state_text(_with_words(desired, current)),
        standing=tuple(sorted({*made} & _keys(current))),
    )


def _left(
    own: Undeclared, gone: Undeclared, accounts: tuple[str, ...], *, prune: bool
) -> list[str]:
    if not prune:
        leaving = {*gone}
        why = "made by hpcsite and no longer declared; slurm_accounts_prune: true removes it"
        return [f"{what}: {why}" for what in own if what not in leaving]
    return [
        f"account {name}: no longer declared, but others are in it or below it"
        for name in gone.accounts
        if name not in accounts
    ]


def _keys(state: AccountState) -> set[str]:
    return {
        *map(qos_key, state.qos),
        *map(account_key, state.accounts),
        *(member.key for member in state.memberships),
    }


def _scope(current: AccountState, desired: AccountState, removed: Undeclared) -> AccountState:
    members = {*desired.memberships, *removed.memberships}
    leaving = {member.user for member in removed.memberships}
    return AccountState(
        qos=_only(current.qos, {*desired.qos, *removed.qos}),
        accounts=_only(current.accounts, {*desired.accounts, *removed.accounts}),
        memberships={m: v for m, v in current.memberships.items() if m in members},
        default_accounts={
            user: account
            for user, account in current.default_accounts.items()
            if user in desired.default_accounts
            or (user in leaving and Membership(user, account) in members)
        },
    )


def _only(things: Mapping[str, Values], names: set[str]) -> dict[str, Values]:
    return {name: values for name, values in things.items() if name in names}


def _with_words(desired: AccountState, current: AccountState) -> AccountState:
    """Fill in an account's words where the site has none: those that stand are kept."""
    words = {
        name: {each.option: values.get(each.option, "") for each in WORD_FIELDS}
        for name, values in current.accounts.items()
    }
    accounts = {name: {**words.get(name, {}), **v} for name, v in desired.accounts.items()}
    return replace(desired, accounts=accounts)
