"""Filters that hand an inventory's variables to hpcsite.slurm. No rules of their own.

Ansible loads every filter file in each worker process, one a host and task, so what costs time to
import (pydantic's models: 0.1 s) is imported where it is used: at module level it took more than
half of a deploy that changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hpcsite.site.model import SiteKeys
    from hpcsite.slurm.hardware import Candidate

EVIDENCE = "slurm_evidence_result"


def slurm_configuration(
    hostvars: Mapping[str, Any],
    controller: str,
    groups: Mapping[str, Sequence[str]],
    paths: Mapping[str, str],
    standing: str = "",
    version: str = "",
) -> dict[str, Any]:
    """Make the controller's files from the variables of all hosts; see `Configuration`."""
    from ansible.errors import AnsibleFilterError

    from hpcsite.errors import InvalidSiteError
    from hpcsite.slurm.configuration import configure
    from hpcsite.slurm.render import Controller, Paths

    keys = _site_keys(hostvars[controller])
    database = [str(name) for name in groups.get("slurm_dbd", [])]
    try:
        result = configure(
            keys,
            Controller(
                name=controller,
                address=_address(controller, hostvars[controller]),
                database_host=database[0] if database else None,
            ),
            Paths(state_dir=str(paths["state_dir"]), spool_dir=str(paths["spool_dir"])),
            [
                _candidate(str(name), hostvars[name], keys, groups)
                for name in groups["slurm_compute"]
            ],
            str(standing),
            str(version),
        )
    except InvalidSiteError as error:
        raise AnsibleFilterError("\n".join(map(str, error.problems))) from error
    return {
        "files": {
            "slurm.conf": result.slurm_conf,
            "gres.conf": result.gres_conf,
            "cgroup.conf": result.cgroup_conf,
        },
        "problems": result.problems,
        "drain": list(result.drain),
        "sound": list(result.sound),
    }


def slurm_action(old: Mapping[str, str], new: Mapping[str, str], version: str = "") -> str:
    """Say what slurmctld needs to go from some files to others: none, reconfigure or restart."""
    from hpcsite.slurm.change import needed_action

    others = any(old.get(name, "") != text for name, text in new.items() if name != "slurm.conf")
    return needed_action(
        str(old.get("slurm.conf", "")),
        str(new["slurm.conf"]),
        others_changed=others,
        version=str(version),
    )


def slurm_drained_nodes(listing: str, reason: str = "") -> list[str]:
    """Find drained nodes in `sinfo -N -o '%N|%T|%E'`, with a reason that begins so."""
    drained: dict[str, None] = {}
    for line in str(listing).splitlines():
        name, _, rest = line.partition("|")
        state, _, why = rest.partition("|")
        if state.startswith("drain") and why.startswith(reason):
            drained[name] = None
    return list(drained)


def _site_keys(variables: Mapping[str, Any]) -> SiteKeys:
    from ansible.errors import AnsibleFilterError
    from pydantic import ValidationError

    from hpcsite.site.model import SiteKeys

    raw = {
        field: _plain(variables[f"site_{field}"])
        for field in SiteKeys.model_fields
        if f"site_{field}" in variables
    }
    try:
        return SiteKeys.model_validate({k: v for k, v in raw.items() if v is not None})
    except ValidationError as error:
        raise AnsibleFilterError(f"the site's keys are invalid: {error}") from error


def _candidate(
    name: str, variables: Mapping[str, Any], keys: SiteKeys, groups: Mapping[str, Sequence[str]]
) -> Candidate:
    from hpcsite.slurm.hardware import Candidate, Evidence

    group = next((group for group in keys.node_groups if name in groups.get(group, ())), "")
    result = _plain(variables[EVIDENCE]) if EVIDENCE in variables else None
    # A skipped task leaves a result too: in check mode there may be no slurmd to ask yet.
    evidence = None
    if isinstance(result, Mapping) and not result.get("skipped"):
        evidence = Evidence.from_result(result)
    return Candidate(
        name=name,
        address=_address(name, variables),
        group=group,
        evidence=evidence,
    )


def _address(name: str, variables: Mapping[str, Any]) -> str:
    for key in ("site_address", "ansible_host"):
        if variables.get(key):
            return str(variables[key])
    return name


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
            "slurm_action": slurm_action,
            "slurm_configuration": slurm_configuration,
            "slurm_drained_nodes": slurm_drained_nodes,
        }
