"""The text of cgroup.conf. Pure; the same input gives the same bytes."""

from collections.abc import Mapping

from hpcsite.site.cgroup_parameters import SINCE, is_yes
from hpcsite.site.model import Scalar
from hpcsite.slurm.hardware import Tracking
from hpcsite.slurm.release import release
from hpcsite.slurm.text import HEADER, merge

SYSTEMD_TIMEOUT_MS = "20000"


def render_cgroup_conf(
    tracking: Tracking, version: str = "", parameters: Mapping[str, Scalar | None] | None = None
) -> str:
    """cgroup.conf: constrain jobs by cgroups, or leave them alone altogether.

    Before 23.02 Slurm has no plugin that does nothing, and ends over its name.
    """
    if tracking == "linuxproc":
        return HEADER + ("CgroupPlugin=disabled\n" if release(version) >= (23, 2) else "")
    parameters = parameters or {}
    values = {
        "ConstrainCores": "yes",
        "ConstrainDevices": "yes",
        "ConstrainRAMSpace": "yes",
        # Else a job goes on in swap with what it has not been given. AllowedSwapSpace is 0 %.
        "ConstrainSwapSpace": "yes",
        # How long slurmd waits for its scope, then it ends: 1 s by default, too short for a node
        # whose systemd is busy with a boot.
        "SystemdTimeout": SYSTEMD_TIMEOUT_MS if release(version) >= SINCE["systemdtimeout"] else "",
    }
    memory = {key.lower(): value for key, value in parameters.items()}.get("constrainramspace", 1)
    if not is_yes(memory):
        # With it alone, Slurm would limit the memory all the same (cgroup.conf(5)).
        values["ConstrainSwapSpace"] = ""
    merged = merge({key: value for key, value in values.items() if value}, parameters)
    return HEADER + "".join(f"{key}={value}\n" for key, value in merged.items())
