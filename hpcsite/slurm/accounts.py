"""QOS, accounts and users in Slurm's accounting, as a site declares them. Pure."""

from collections.abc import Iterable, Mapping

from hpcsite.site.model import Frozen, SiteKeys
from hpcsite.slurm.accounts_state import (
    ASSOCIATION_FIELDS,
    QOS_FIELDS,
    ROOT,
    WORD_FIELDS,
    AccountState,
    Field,
    Membership,
    Values,
    state_text,
)

# The account of the user of verification, where the site gives that user none.
VERIFY_ACCOUNT = "hpcsite"


def declares_accounts(keys: SiteKeys) -> bool:
    """Whether the site describes its accounting; if not, hpcsite leaves slurmdbd alone."""
    users = any(user.accounts or user.default_account for user in keys.users)
    return bool(keys.qos or keys.accounts or keys.associations or users)


def absent_users(keys: SiteKeys) -> list[str]:
    """Users who are to be nowhere."""
    return [user.name for user in keys.users if user.state == "absent"]


def desired_state(keys: SiteKeys) -> AccountState:
    """Make what slurmdbd is to hold; nothing for a site that declares none of it."""
    if not declares_accounts(keys):
        return AccountState()
    accounts = {
        account.name: {
            "Parent": account.parent,
            **_values(ASSOCIATION_FIELDS, account),
            **{each: text for each, text in _values(WORD_FIELDS, account).items() if text},
        }
        for account in keys.accounts
        if account.name != ROOT
    }
    memberships: dict[Membership, Values] = {
        Membership(user.name, account): _values(ASSOCIATION_FIELDS, None)
        for user in keys.users
        if user.state == "present"
        for account in _with_default(user.accounts, user.default_account)
    }
    absent = set(absent_users(keys))
    for each in keys.associations:
        if each.user not in absent:
            member = Membership(each.user, each.account, each.partition or "")
            memberships[member] = _values(ASSOCIATION_FIELDS, each)
    _admit_verification(keys, accounts, memberships)
    return AccountState(
        qos={qos.name: _values(QOS_FIELDS, qos) for qos in keys.qos},
        accounts=accounts,
        memberships=memberships,
        default_accounts=_default_accounts(keys, memberships),
    )


def render_accounts(keys: SiteKeys) -> str:
    """Write the QOS, accounts and users that the site declares, a line each; empty for none."""
    return state_text(desired_state(keys))


def _with_default(accounts: Iterable[str], default: str | None) -> list[str]:
    return list(dict.fromkeys([*([default] if default else []), *accounts]))


def _admit_verification(
    keys: SiteKeys, accounts: dict[str, Values], memberships: dict[Membership, Values]
) -> None:
    """Give the user of verification an account: Slurm refuses the jobs of whoever has none."""
    user = keys.verify_user
    if user is None or any(member.user == user for member in memberships):
        return
    if VERIFY_ACCOUNT not in accounts:
        accounts[VERIFY_ACCOUNT] = {
            "Parent": ROOT,
            **_values(ASSOCIATION_FIELDS, None),
            "Description": "verification of the site",
            "Organization": "hpcsite",
        }
    memberships[Membership(user, VERIFY_ACCOUNT)] = _values(ASSOCIATION_FIELDS, None)


def _default_accounts(keys: SiteKeys, memberships: Iterable[Membership]) -> dict[str, str]:
    """Take each user's own word, else the first account that the site gives."""
    first: dict[str, str] = {}
    for member in memberships:
        first.setdefault(member.user, member.account)
    said = {user.name: user.default_account for user in keys.users if user.default_account}
    return {user: said.get(user, account) for user, account in first.items()}


def _values(fields: Iterable[Field], model: Frozen | None) -> Values:
    """Bring a model's fields into slurmdbd's form; without a model, as if none were set."""
    return {each.option: each.canonical(_raw(getattr(model, each.label, None))) for each in fields}


def _raw(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return ",".join(f"{name}={count}" for name, count in value.items())
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value)
