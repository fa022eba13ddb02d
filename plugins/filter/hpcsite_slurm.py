"""Filters that hand an inventory's variables to hpcsite.slurm. No rules of their own.

Ansible loads every filter file in each worker process, one a host and task, so what costs time to
import (pydantic's models: 0.1 s) is imported where it is used: at module level it took more than
half of a deploy that changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
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
    from hpcsite.site.topology import slurm_tree
    from hpcsite.slurm.cluster import Controller, Paths, Server
    from hpcsite.slurm.configuration import configure
    from hpcsite.slurm.partition_qos import partition_qos

    keys = _site_keys(hostvars[controller])
    database = [str(name) for name in groups.get("slurm_dbd", [])]
    compute = [str(name) for name in groups.get("slurm_compute", ())]
    group_of = {str(node): name for name in keys.node_groups for node in groups.get(name, ())}
    try:
        result = configure(
            keys,
            Controller(
                name=controller,
                address=_address(controller, hostvars[controller]),
                database_host=database[0] if database else None,
                backups=tuple(
                    Server(str(name), _address(str(name), hostvars[name]))
                    for name in groups.get("slurm_backup_controller", ())
                ),
            ),
            Paths(state_dir=str(paths["state_dir"]), spool_dir=str(paths["spool_dir"])),
            [_candidate(name, hostvars[name], group_of.get(name, "")) for name in compute],
            str(standing),
            str(version),
            None if keys.topology == "none" else slurm_tree(keys, compute),
        )
    except InvalidSiteError as error:
        raise AnsibleFilterError("\n".join(map(str, error.problems))) from error
    return {
        "files": result.files,
        "problems": result.problems,
        "drain": list(result.drain),
        "sound": list(result.sound),
        "outside": list(result.outside),
        "removed": list(result.removed),
        "standing_state_dir": result.standing_state_dir,
        "qos": list(partition_qos(keys)),
    }


def slurm_new_qos(variables: Mapping[str, Any], standing: Sequence[str]) -> list[dict[str, Any]]:
    """Make steps of the module `slurm_accounts` for the QOS that partitions name and lack."""
    from dataclasses import asdict

    from hpcsite.slurm.partition_qos import new_partition_qos

    return [asdict(step) for step in new_partition_qos(_site_keys(variables), list(standing))]


def slurm_action(
    applied: Mapping[str, str],
    new: Mapping[str, str],
    standing: str = "",
    written: Sequence[str] = (),
    version: str = "",
) -> str:
    """Say what slurmctld needs to run on the new files: none, reconfigure or restart.

    `applied` is what slurmctld took over from the last deploy, `standing` the slurm.conf that this
    one found, `written` the names of the files that it had to write or remove. Both count: a file
    that somebody else changed may or may not have been taken over.
    """
    from hpcsite.slurm.change import needed_action, stronger

    after = str(new["slurm.conf"])
    # A file that is no longer there is a change too.
    others = {*applied, *new, *written} - {"slurm.conf"}
    since_applied = needed_action(
        str(applied.get("slurm.conf", "")),
        after,
        others_changed=any(applied.get(name, "") != new.get(name, "") for name in others),
        version=str(version),
    )
    if not written:
        return since_applied
    since_standing = needed_action(
        str(standing),
        after,
        others_changed=any(name in written for name in others),
        version=str(version),
    )
    return stronger("reconfigure", since_applied, since_standing)


def slurm_drained_nodes(listing: str, reason: str = "") -> list[str]:
    """Find drained nodes in `scontrol --oneliner show node`, with a reason that begins so."""
    from hpcsite.slurm.listings import read_node_states

    states = read_node_states(str(listing)).values()
    return [node.name for node in states if node.drained and node.reason.startswith(reason)]


def slurm_nodes_to_drain(
    listing: str, drain: Sequence[str], problems: Mapping[str, str], mark: str
) -> list[str]:
    """Choose which nodes to drain by `scontrol --oneliner show node`; see `to_drain`."""
    from hpcsite.slurm.listings import read_node_states, to_drain

    reasons = {str(name): f"{mark}{problems[name]}" for name in drain}
    return to_drain(read_node_states(str(listing)), reasons, mark)


def slurm_node(listing: str, name: str) -> dict[str, Any]:
    """Say of a node in `scontrol --oneliner show node` whether it is heard, and its fault."""
    from hpcsite.slurm.listings import read_node_states

    node = read_node_states(str(listing)).get(str(name))
    if node is None:
        return {"heard": False, "fault": "slurmctld does not know it"}
    return {"heard": node.heard, "fault": node.fault}


def slurm_jobs_on(listing: str, nodes: Sequence[str]) -> list[str]:
    """Name the nodes that jobs hold and the jobs, of `squeue --noheader --format '%i|%N'`."""
    from hpcsite.slurm.listings import jobs_on

    held = jobs_on(str(listing), [str(node) for node in nodes])
    return [f"{node} (job {', '.join(jobs)})" for node, jobs in held.items()]


def slurm_fold(nodes: Sequence[str]) -> str:
    """Fold node names as Slurm writes them."""
    from hpcsite.slurm.conf import fold

    return fold([str(node) for node in nodes])


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
        keys = SiteKeys.model_validate({k: v for k, v in raw.items() if v is not None})
    except ValidationError as error:
        raise AnsibleFilterError(f"the site's keys are invalid: {error}") from error
    return _with_profiles(keys, variables)


def _with_profiles(keys: SiteKeys, variables: Mapping[str, Any]) -> SiteKeys:
    """Fill in what node groups leave to their hardware profiles, as `load_site` does."""
    if not any(group.hardware_profile for group in keys.node_groups.values()):
        return keys
    from ansible.errors import AnsibleFilterError

    from hpcsite.errors import InvalidSiteError
    from hpcsite.site.catalogue import load_catalogue
    from hpcsite.site.hardware import with_profiles

    # Where Ansible was told of an inventory folder, the site's own profiles are in it.
    sources = [Path(str(source)) for source in variables.get("ansible_inventory_sources") or ()]
    folder = next((source for source in sources if source.is_dir()), None)
    try:
        catalogue = load_catalogue(folder)
    except InvalidSiteError as error:
        raise AnsibleFilterError("\n".join(map(str, error.problems))) from error
    for name, group in keys.node_groups.items():
        if group.hardware_profile and group.hardware_profile not in catalogue.nodes:
            message = f"site_node_groups.{name}: no hardware profile {group.hardware_profile}"
            raise AnsibleFilterError(message)
    groups = with_profiles(keys.node_groups, catalogue)
    return keys.model_copy(update={"node_groups": groups})


def _candidate(name: str, variables: Mapping[str, Any], group: str) -> Candidate:
    from hpcsite.slurm.hardware import Candidate, Evidence

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
            "slurm_new_qos": slurm_new_qos,
            "slurm_nodes_to_drain": slurm_nodes_to_drain,
            "slurm_fold": slurm_fold,
            "slurm_jobs_on": slurm_jobs_on,
            "slurm_node": slurm_node,
        }
