"""Which keys of slurm.conf a site may set itself.

hpcsite derives some keys from the inventory. If a site could set them a second time, the file
would say one thing and the inventory another, so they are refused with the place where they belong.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_TRACKING = "use site_slurm_process_tracking in its place"
_CONTROLLER = "use the group slurm_controller in its place"
_DATABASE = "use the group slurm_dbd in its place"
_FIXED = "leave it: hpcsite's roles rely on its value"

# Keys in lower case → what to do instead.
OWNED: dict[str, str] = {
    "accountingstoragehost": _DATABASE,
    "accountingstoragetype": _DATABASE,
    "authtype": _FIXED,
    "clustername": "use site_slurm_cluster_name in its place",
    "controladdr": _CONTROLLER,
    "controlmachine": _CONTROLLER,
    "grestypes": "use `gpus` of site_node_groups in its place",
    "include": "write the included keys into site_slurm_parameters",
    "jobacctgathertype": _TRACKING,
    "nodename": "use site_node_groups in its place",
    "nodeset": "use node groups, which site_partitions names, in its place",
    "partitionname": "use site_partitions in its place",
    "proctracktype": _TRACKING,
    "slurmctldhost": _CONTROLLER,
    "slurmctldport": _FIXED,
    "slurmdport": _FIXED,
    "slurmdspooldir": "use slurmctld_spool_dir in its place",
    "slurmuser": _FIXED,
    "statesavelocation": "use slurmctld_state_dir in its place",
    "taskplugin": _TRACKING,
    "topologyplugin": "use site_slurm_topology in its place",
}

OWNED_OF_PARTITION: dict[str, str] = {
    "allowaccounts": "use allow_accounts in its place",
    "allowgroups": "use allow_groups in its place",
    "allowqos": "use allow_qos in its place",
    "default": "use default in its place",
    "defaulttime": "use default_time in its place",
    "maxnodes": "use max_nodes in its place",
    "maxtime": "use max_time in its place",
    "nodes": "use node_groups in its place",
    "oversubscribe": "use oversubscribe in its place",
    "partitionname": "use name in its place",
    "preemptmode": "use preempt_mode in its place",
    "priority": "use priority_tier in its place",
    "prioritytier": "use priority_tier in its place",
    "qos": "use qos in its place",
    "shared": "use oversubscribe in its place",
    "state": "use state in its place",
}

# Keys that a site may add to but not take away by null.
KEPT: dict[str, str] = {
    "slurmctldparameters": "leave it: nodes fetch their configuration by its enable_configless",
}

_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_UNWRITABLE = re.compile(r'[\n\r\v\f\x1c-\x1e\x85\u2028\u2029#"\\]')


@dataclass(frozen=True)
class Refusal:
    """Why a key may not be set so, what to do, and the mistake's code.

    The code is empty for what only a running Slurm's release can tell.
    """

    why: str
    hint: str
    code: str = ""


def refused_parameters(
    parameters: Mapping[str, object], owned: Mapping[str, str] = OWNED
) -> dict[str, Refusal]:
    """Find the keys that a site may not set.

    `owned` is `OWNED` for `site_slurm_parameters`, `OWNED_OF_PARTITION` for a partition's
    `parameters`.
    """
    refused: dict[str, Refusal] = {}
    seen: dict[str, str] = {}
    for key, value in parameters.items():
        if refusal := _refusal(key, value, owned) or _twice(key, seen):
            refused[key] = refusal
        seen[key.lower()] = key
    return refused


def _refusal(key: str, value: object, owned: Mapping[str, str]) -> Refusal | None:
    if not _KEY.fullmatch(key):
        hint = "keys are letters, digits and underscores"
        return Refusal(f"{key!r} is no key of Slurm's", hint, code="HPC1211")
    if key.lower() in owned:
        hint = owned[key.lower()]
        return Refusal(f"{key} is written by hpcsite itself", hint, code="HPC1212")
    if value is None and key.lower() in KEPT:
        return Refusal(f"{key} cannot be taken away", KEPT[key.lower()], code="HPC1213")
    if _UNWRITABLE.search(str(value)):
        return Refusal(
            f"the value of {key} holds a line break, a #, a quote or a backslash",
            "write it on one line, without a comment; hpcsite quotes blanks itself",
            code="HPC1214",
        )
    return None


def _twice(key: str, seen: Mapping[str, str]) -> Refusal | None:
    other = seen.get(key.lower())
    if other is None:
        return None
    message = f"{key} is the same key as {other}: Slurm ignores case"
    return Refusal(message, "keep one of them", code="HPC1215")
