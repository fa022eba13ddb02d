"""Which keys of slurm.conf a site may set itself, and how a value is written.

hpcsite derives some keys from the inventory. If a site could set them a second time, the file
would say one thing and the inventory another, so they are refused with the place where they belong.
"""

import re
from collections.abc import Mapping

Scalar = str | int | float | bool

_TRACKING = "set site_slurm_process_tracking instead"
_FIXED = "hpcsite keeps it at Slurm's default, which its other roles rely on"

# Keys in lower case → what to do instead.
OWNED: dict[str, str] = {
    "accountingstoragehost": "the host in the group slurm_dbd is used",
    "accountingstoragetype": "it follows from the group slurm_dbd",
    "authtype": _FIXED,
    "clustername": "set site_slurm_cluster_name instead",
    "controladdr": "the host in the group slurm_controller is used",
    "controlmachine": "the host in the group slurm_controller is used",
    "grestypes": "it follows from gpus in site_node_groups",
    "include": "write the keys themselves into site_slurm_parameters",
    "jobacctgathertype": _TRACKING,
    "nodename": "set site_node_groups instead",
    "nodeset": "name node groups in site_partitions instead",
    "partitionname": "set site_partitions instead",
    "proctracktype": _TRACKING,
    "slurmctldhost": "the host in the group slurm_controller is used",
    "slurmctldport": _FIXED,
    "slurmdport": _FIXED,
    "slurmdspooldir": "set slurmctld_spool_dir instead",
    "slurmuser": _FIXED,
    "statesavelocation": "set slurmctld_state_dir instead",
    "taskplugin": _TRACKING,
}

OWNED_OF_PARTITION: dict[str, str] = {
    "default": "set the partition's `default` instead",
    "defaulttime": "set the partition's `default_time` instead",
    "maxtime": "set the partition's `max_time` instead",
    "nodes": "set the partition's `node_groups` instead",
    "partitionname": "set the partition's `name` instead",
    "state": "set the partition's `state` instead",
}

_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_UNWRITABLE = re.compile(r'[\n\r#"\\]')


def refused_parameters(
    parameters: Mapping[str, object], owned: Mapping[str, str] = OWNED
) -> dict[str, str]:
    """Find the keys that a site may not set: key → why, and what to do.

    `owned` is `OWNED` for `site_slurm_parameters`, `OWNED_OF_PARTITION` for a partition's
    `parameters`.
    """
    refused: dict[str, str] = {}
    seen: dict[str, str] = {}
    for key, value in parameters.items():
        if reason := _reason(key, value, owned) or _twice(key, seen):
            refused[key] = reason
        seen[key.lower()] = key
    return refused


def written(value: Scalar) -> str:
    """Spell a value as Slurm's files do: YES and NO for truth values, quotes around blanks."""
    if isinstance(value, bool):
        return "YES" if value else "NO"
    text = str(value)
    return f'"{text}"' if re.search(r"\s", text) else text


def _reason(key: str, value: object, owned: Mapping[str, str]) -> str:
    if not _KEY.fullmatch(key):
        return f"{key!r} is no key that Slurm could read"
    if key.lower() in owned:
        return f"{key} is derived from the inventory: {owned[key.lower()]}"
    if _UNWRITABLE.search(str(value)):
        return f"{key} has a character that a line of slurm.conf cannot hold"
    return ""


def _twice(key: str, seen: Mapping[str, str]) -> str:
    other = seen.get(key.lower())
    return f"{key} is the same key as {other}: Slurm ignores case" if other else ""
