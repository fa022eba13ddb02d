"""Shares and QOS as they come down the tree of accounts."""

from collections.abc import Iterator, Mapping

from hpcsite.errors import Problem
from hpcsite.site.draft import Draft
from hpcsite.site.model.accounts import Account
from hpcsite.site.sources import KeyPath

_PARAMETERS = "site_slurm_parameters"
_BASIC = "priority/basic"


def default_qos_that_is_inherited_may_be_used(draft: Draft) -> Iterator[Problem]:
    """Check that a list of QOS has the default one that comes down from an account above.

    slurmdbd refuses a list without it: its owner could submit no job that names no QOS.
    """
    accounts = {account.name: account for _, account in draft.entries("accounts", "name", "parent")}
    for key in ("accounts", "associations"):
        for number, entry in draft.entries(key, "qos", "default_qos"):
            if not entry.qos or entry.default_qos is not None:
                continue
            above = entry.parent if isinstance(entry, Account) else entry.account
            giver, default = _default_above(above, accounts)
            if default is not None and default not in entry.qos:
                yield draft.problem(
                    f"{', '.join(entry.qos)} leaves out {default}, the default QOS that comes down "
                    f"from the account {giver}",
                    (f"site_{key}", number, "qos"),
                    f"add {default}, or set default_qos to one of these",
                    code="HPC1525",
                )


def _default_above(name: str, accounts: Mapping[str, Account]) -> tuple[str, str | None]:
    """Find the nearest account, upwards from `name`, that has a default QOS."""
    seen: set[str] = set()
    while name in accounts and name not in seen:
        seen.add(name)
        if accounts[name].default_qos is not None:
            return name, accounts[name].default_qos
        name = accounts[name].parent
    return "", None


def shares_have_a_weight(draft: Draft) -> Iterator[Problem]:
    """Doubt shares and priorities that nothing weighs: Slurm's weights are 0 (slurm.conf(5))."""
    for what, weight, place in (
        ("fairshare", "PriorityWeightFairshare", _first_share(draft)),
        ("priority", "PriorityWeightQOS", _first_priority(draft)),
    ):
        if place is None or _weighs(draft, weight):
            continue
        yield draft.problem(
            f"{what} has no effect: {weight} is 0",
            place,
            f"set PriorityType to priority/multifactor and {weight} to e.g. 100000 in "
            f"{_PARAMETERS}, or remove {what}",
            code="HPC1526",
        )


def _first_share(draft: Draft) -> KeyPath | None:
    for key in ("accounts", "associations"):
        for number, entry in draft.entries(key, "fairshare"):
            if "fairshare" in entry.model_fields_set:
                return (f"site_{key}", number, "fairshare")
    return None


def _first_priority(draft: Draft) -> KeyPath | None:
    found = (n for n, qos in draft.entries("qos", "priority") if qos.priority)
    number = next(found, None)
    return None if number is None else ("site_qos", number, "priority")


def _weighs(draft: Draft, weight: str) -> bool:
    values = {name.lower(): str(value) for name, value in draft.keys.slurm_parameters.items()}
    if values.get("prioritytype", "").lower() == _BASIC:
        return False
    # What Slurm would make of a value that is no number is the rule of its keys to say.
    return values.get(weight.lower(), "0").strip() not in ("", "0")


RULES = (default_qos_that_is_inherited_may_be_used, shares_have_a_weight)
