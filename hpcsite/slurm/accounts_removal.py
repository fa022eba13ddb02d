"""What of Slurm's accounting is removed, and what is left although the site declares it no more."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from hpcsite.slurm.accounts_state import (
    NORMAL,
    ROOT,
    AccountState,
    Membership,
    account_key,
    qos_key,
)
from hpcsite.slurm.accounts_steps import (
    SACCTMGR,
    Step,
    account_depths,
    default_step,
    membership_condition,
)


@dataclass(frozen=True)
class Undeclared:
    """What stands in slurmdbd and not in the site, and is either of hpcsite's making or absent."""

    memberships: tuple[Membership, ...] = ()
    accounts: tuple[str, ...] = ()
    qos: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[str]:
        """Name each."""
        yield from (f"association {member}" for member in self.memberships)
        yield from (f"account {name}" for name in self.accounts)
        yield from (f"QOS {name}" for name in self.qos)


def of_absent_users(
    desired: AccountState, current: AccountState, absent: Collection[str]
) -> Undeclared:
    """Find the associations of users whom the site has declared absent."""
    return Undeclared(
        tuple(
            member
            for member in current.memberships
            if member.user in absent and member not in desired.memberships
        )
    )


def of_own_making(
    desired: AccountState, current: AccountState, made: Collection[str]
) -> Undeclared:
    """Find what hpcsite made and the site no longer declares; never what is Slurm's own."""
    return Undeclared(
        tuple(
            member
            for member in current.memberships
            if member.key in made and member not in desired.memberships and member.user != ROOT
        ),
        tuple(
            name
            for name in current.accounts
            if account_key(name) in made and name not in {*desired.accounts, ROOT}
        ),
        tuple(
            name
            for name in current.qos
            if qos_key(name) in made and name not in {*desired.qos, NORMAL}
        ),
    )


def removal_steps(
    desired: AccountState, current: AccountState, gone: Undeclared, cluster: str
) -> Iterator[Step]:
    """Remove associations, accounts from the bottom up, and QOS."""
    users: dict[str, list[Membership]] = {}
    for member in gone.memberships:
        users.setdefault(member.user, []).append(member)
    standing: dict[str, list[Membership]] = {}
    for member in current.memberships:
        standing.setdefault(member.user, []).append(member)
    for user, members in users.items():
        rest = [member for member in standing[user] if member not in members]
        if rest or user in desired.default_accounts:
            yield from _leave(user, members, rest, (desired, current, cluster))
        else:
            accounts = dict.fromkeys(member.account for member in members)
            yield Step(
                text=f"user {user}: removed, was in {', '.join(accounts)}",
                argv=(*SACCTMGR, "delete", "user", "where", f"name={user}", f"cluster={cluster}"),
                removes=tuple(member.key for member in members),
                jobs=(f"--user={user}",),
            )
    for name in emptied_accounts(desired, current, gone):
        yield Step(
            text=f"account {name}: removed",
            # With a cluster, the account itself would stay, without any association.
            argv=(
                *(*SACCTMGR, "delete", "account", "where", f"name={name}"),
                *((f"cluster={cluster}",) if name in current.elsewhere else ()),
            ),
            removes=(account_key(name),),
            jobs=(f"--account={name}",),
        )
    for name in gone.qos:
        yield Step(
            text=f"QOS {name}: removed",
            argv=(*SACCTMGR, "delete", "qos", "where", f"name={name}"),
            removes=(qos_key(name),),
            jobs=(f"--qos={name}",),
        )


def emptied_accounts(
    desired: AccountState, current: AccountState, gone: Undeclared
) -> tuple[str, ...]:
    """Choose, of the accounts that are to go, those below which nothing stays; lowest first.

    sacctmgr would take the associations of everybody in an account along with it.
    """
    staying = ({*current.memberships} - {*gone.memberships}) | {*desired.memberships}
    used = {member.account for member in staying}
    parents = {
        name: values["Parent"] for name, values in {**current.accounts, **desired.accounts}.items()
    }
    chosen: list[str] = []
    depths = account_depths(current.accounts)
    for name in sorted(gone.accounts, key=lambda name: -depths[name]):
        children = {child for child, parent in parents.items() if parent == name}
        if name not in used and children <= {*chosen}:
            chosen.append(name)
    return tuple(chosen)


def _leave(
    user: str,
    members: list[Membership],
    rest: list[Membership],
    of: tuple[AccountState, AccountState, str],
) -> Iterator[Step]:
    desired, current, cluster = of
    # slurmdbd removes nobody from his default account; the site's own choice is set by then.
    default = current.default_accounts.get(user, "")
    accounts = {member.account for member in rest}
    if user not in desired.default_accounts and default not in accounts:
        yield default_step(user, default, min(accounts), cluster)
    for member in members:
        condition = membership_condition(member, current, cluster)
        partition = (f"--partition={member.partition}",) if member.partition else ()
        yield Step(
            text=f"association {member}: removed",
            argv=(*SACCTMGR, "delete", "user", "where", *condition),
            removes=(member.key,),
            jobs=(f"--user={user}", f"--account={member.account}", *partition),
        )
