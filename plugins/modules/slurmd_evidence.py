#!/usr/bin/python
"""Say what a compute node has, as Slurm would see it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: slurmd_evidence
short_description: What a compute node has, as Slurm would see it
description:
  - Runs C(slurmd -C), and looks for GPU device files and for the cgroup v2 controllers that the
    kernel gives. Changes nothing, so it runs in check mode too.
  - Where slurmd is not installed there is no evidence; that is an error except in check mode.
options:
  gpu_device:
    description: GPU device files less their number.
    type: str
    default: /dev/nvidia
author: hpcsite
"""

EXAMPLES = """
- name: Measure what the node has
  slurmd_evidence:
  register: slurm_evidence_result
"""

RETURN = """
evidence:
  description: >-
    cpus, sockets, cores_per_socket, threads_per_core, memory_mib, gpu_devices,
    cgroup_controllers.
  returned: where slurmd is installed
  type: dict
"""

CONTROLLERS = "/sys/fs/cgroup/cgroup.controllers"


def parse_slurmd_c(text: str) -> dict[str, int]:
    """Hardware in the output of C(slurmd -C); memory in MiB. Raises KeyError where a part lacks."""
    found = {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)\b", text)}
    boards = found.get("Boards", 1)
    sockets = found["Sockets"] if "Sockets" in found else boards * found["SocketsPerBoard"]
    return {
        "cpus": found["CPUs"],
        "sockets": sockets,
        "cores_per_socket": found["CoresPerSocket"],
        "threads_per_core": found["ThreadsPerCore"],
        "memory_mib": found["RealMemory"],
    }


def gpu_devices(prefix: str) -> list[str]:
    """Device files of the prefix and a number, in the order of their numbers."""
    pattern = re.compile(re.escape(prefix) + r"(\d+)")
    folder = Path(prefix).parent
    files = folder.iterdir() if folder.is_dir() else ()
    matches = (pattern.fullmatch(str(path)) for path in files)
    numbers = sorted(int(match.group(1)) for match in matches if match)
    return [prefix + str(number) for number in numbers]


def cgroup_controllers(path: str = CONTROLLERS) -> list[str]:
    """Read which cgroup v2 controllers the kernel gives; none without cgroup v2."""
    try:
        return Path(path).read_text().split()
    except OSError:
        return []


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={"gpu_device": {"type": "str", "default": "/dev/nvidia"}},
        supports_check_mode=True,
    )
    slurmd = module.get_bin_path("slurmd", opt_dirs=["/usr/sbin", "/usr/local/sbin"])
    if not slurmd and module.check_mode:
        module.exit_json(changed=False, skipped=True, msg="slurmd is not installed yet")
    if not slurmd:
        module.fail_json(msg="slurmd is not installed")
    code, out, err = module.run_command([slurmd, "-C"])
    try:
        evidence: dict[str, Any] = parse_slurmd_c(out)
    except KeyError as key:
        module.fail_json(msg=f"slurmd -C (exit code {code}) names no {key}: {err or out}")
    evidence["gpu_devices"] = gpu_devices(module.params["gpu_device"])
    evidence["cgroup_controllers"] = cgroup_controllers()
    module.exit_json(changed=False, evidence=evidence)


if __name__ == "__main__":
    main()
