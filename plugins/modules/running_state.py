#!/usr/bin/python
"""Say what a host runs now: its kernel, its NVIDIA driver and, of the controller, the jobs."""

from __future__ import annotations

import platform
import re
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: running_state
short_description: What a host runs now
description:
  - Reads the kernel's release and the version of the loaded NVIDIA driver. Changes nothing.
  - With O(jobs), asks Slurm for all jobs that hold nodes.
options:
  jobs:
    description: Whether this is the host to ask for jobs.
    type: bool
    default: false
author: hpcsite
"""

EXAMPLES = """
- name: Look at what runs
  running_state:
    jobs: true
"""

RETURN = """
state:
  description: >-
    kernel; nvidia_driver, empty where none is loaded; jobs, a list of id, user and nodes, or null
    where nobody could say; jobs_problem, why.
  returned: always
  type: dict
"""

NVIDIA = "/proc/driver/nvidia/version"
# Of the proprietary and of the open kernel module.
VERSION = re.compile(r"Kernel Module(?: for \S+)?\s+(?P<version>\d+(?:\.\d+)+)")
# Jobs that hold nodes. Text and three fields: every release of Slurm prints them alike, array jobs
# under the numbers that users know, and a full cluster's are kilobytes and not megabytes.
SQUEUE = ("--noheader", "--states=R,S,CG,CF,ST", "--format=%i|%u|%N")
TIMEOUT_S = 30


def nvidia_driver(path: str = NVIDIA) -> str:
    """Version of the loaded NVIDIA driver; empty without one."""
    try:
        found = VERSION.search(Path(path).read_text())
    except OSError:
        return ""
    return found["version"] if found else ""


def parse_jobs(text: str) -> list[dict[str, str]]:
    """Jobs in the output of squeue."""
    lines = (line.strip().split("|") for line in text.splitlines() if line.count("|") == 2)
    return [{"id": number, "user": user, "nodes": nodes} for number, user, nodes in lines]


def queue(module: AnsibleModule) -> tuple[list[dict[str, str]] | None, str]:
    """Ask squeue for the jobs; a host without Slurm has none."""
    squeue = module.get_bin_path("squeue", opt_dirs=["/usr/local/bin"])
    if not squeue:
        return [], ""
    argv = ["timeout", str(TIMEOUT_S), squeue, *SQUEUE]
    code, out, err = module.run_command(argv, environ_update={"LC_ALL": "C"})
    if code:
        said = err.strip().splitlines()
        return None, said[-1] if said else f"squeue ended with {code}"
    return parse_jobs(out), ""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={"jobs": {"type": "bool", "default": False}}, supports_check_mode=True
    )
    jobs, problem = queue(module) if module.params["jobs"] else (None, "")
    state = {
        "kernel": platform.release(),
        "nvidia_driver": nvidia_driver(),
        "jobs": jobs,
        "jobs_problem": problem,
    }
    module.exit_json(changed=False, state=state)


if __name__ == "__main__":
    main()
