"""Filters that hand a site's QOS, accounts and users to hpcsite.slurm. No rules of their own.

As in hpcsite_slurm.py, what costs time to import is imported where it is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

# All that hpcsite.slurm.accounts reads of a site.
FIELDS = (
    *("name", "slurm_cluster_name", "users", "verify_user"),
    *("qos", "accounts", "associations"),
)


def slurm_account_listings(cluster: str) -> list[dict[str, Any]]:
    """Name the questions to sacctmgr, each with its command."""
    from hpcsite.slurm.accounts_listings import account_listings

    return [{"name": name, "argv": argv} for name, argv in account_listings(str(cluster)).items()]


def slurm_accounts_plan(
    variables: Mapping[str, Any],
    cluster: str,
    answers: Sequence[Mapping[str, Any]],
    made: Sequence[str],
    prune: bool = False,  # noqa: FBT001, FBT002 - a filter's arguments are positional
) -> dict[str, Any]:
    """Plan sacctmgr's commands from the variables of a host; see `AccountPlan`.

    `answers` are the results of a loop over `slurm_account_listings`.
    """
    from ansible.errors import AnsibleFilterError
    from pydantic import ValidationError

    from hpcsite.site.model import SiteKeys
    from hpcsite.slurm.accounts import absent_users, desired_state
    from hpcsite.slurm.accounts_listings import read_state
    from hpcsite.slurm.accounts_plan import plan_accounts

    raw = {
        field: _plain(variables[f"site_{field}"])
        for field in FIELDS
        if variables.get(f"site_{field}") is not None
    }
    try:
        keys = SiteKeys.model_validate(raw)
    except ValidationError as error:
        raise AnsibleFilterError(f"the site's keys are invalid: {error}") from error
    plan = plan_accounts(
        desired_state(keys),
        read_state(
            {str(a["item"]["name"]): str(a.get("stdout") or "") for a in answers}, str(cluster)
        ),
        str(cluster),
        made=[str(key) for key in made],
        absent=absent_users(keys),
        prune=bool(prune),
    )
    return asdict(plan)


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever YAML can hold
    """Render and copy Ansible's lazy containers: pydantic reads dictionaries behind their back."""
    if isinstance(value, Mapping):
        return {str(key): _plain(value[key]) for key in value}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Any]:
        """Name the filters."""
        return {
            "slurm_account_listings": slurm_account_listings,
            "slurm_accounts_plan": slurm_accounts_plan,
        }
