"""What a change of the controller's files demands: nothing, a reconfigure, or a restart.

`scontrol reconfigure` makes slurmctld and every slurmd read their configuration again without
touching jobs. It does not reach everything (scontrol(1), reconfigure; slurm.conf(5)): not the
listening ports, not the authentication, not the identity of the controller. Before Slurm 23.11 it
did not reach nodes and plugins either.
"""

from typing import Literal

from hpcsite.slurm.conf import SlurmConf, parse_slurm_conf
from hpcsite.slurm.release import release

Action = Literal["none", "reconfigure", "restart"]

RESTART_KEYS = frozenset(
    {
        "authalttypes",
        "authinfo",
        "authtype",
        "clustername",
        "communicationparameters",
        "credtype",
        "cryptotype",
        "hashplugin",
        "plugindir",
        "slurmctldhost",
        "slurmctldport",
        "slurmctldportrange",
        "slurmdport",
        "slurmuser",
        "statesavelocation",
        "switchtype",
        "tlstype",
    }
)

# Further keys whose change slurmctld took over only on a restart before 23.11.
RESTART_KEYS_BEFORE_23_11 = RESTART_KEYS | {
    "accountingstoragetres",
    "accountingstoragetype",
    "grestypes",
    "jobacctgathertype",
    "jobcomptype",
    "launchparameters",
    "mpidefault",
    "preempttype",
    "prioritytype",
    "proctracktype",
    "schedulertype",
    "selecttype",
    "selecttypeparameters",
    "slurmctldparameters",
    "taskplugin",
    "topologyplugin",
}

_STRENGTH: tuple[Action, ...] = ("none", "reconfigure", "restart")


def stronger(*actions: Action) -> Action:
    """Choose the action that does what all of them do."""
    return max(actions, key=_STRENGTH.index)


def needed_action(old: str, new: str, *, others_changed: bool = False, version: str = "") -> Action:
    """Say what slurmctld needs to go from one slurm.conf to another.

    `others_changed`: gres.conf, cgroup.conf or topology.conf changed too. `version`: slurmctld's,
    such as `24.11.5`; empty is taken for a current one.
    """
    before, after = parse_slurm_conf(old), parse_slurm_conf(new)
    old_slurm = release(version) < (23, 11)
    restart_keys = RESTART_KEYS_BEFORE_23_11 if old_slurm else RESTART_KEYS
    if _changed_keys(before, after) & restart_keys:
        return "restart"
    if old_slurm and (before.nodes != after.nodes or others_changed):
        return "restart"
    return "reconfigure" if before != after or others_changed else "none"


def _changed_keys(before: SlurmConf, after: SlurmConf) -> set[str]:
    return {key for key, _ in before.keys.items() ^ after.keys.items()}
