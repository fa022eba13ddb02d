#!/usr/bin/python
"""Ansible module: what a host must have before hpcsite changes anything on it."""

from __future__ import annotations

import fcntl
import hashlib
import os
import struct
import time
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
---
module: preflight_probe
short_description: Look at a host before anything is changed on it
description:
  - Reads memory, free space, clock, name, init system, the state of the package manager, and
    whether the host belongs to a cluster already.
  - Changes nothing.
options:
  now:
    description: Time of the computer that deploys, in seconds since the epoch.
    type: float
    required: true
  paths:
    description: Folders whose free space is wanted.
    type: list
    elements: str
    required: true
  package_lock_wait_s:
    description: Seconds to wait until no other program installs packages.
    type: int
    default: 120
author:
  - hpcsite
"""

EXAMPLES = r"""
- name: Look at the host
  preflight_probe:
    now: "{{ now(utc=true).timestamp() }}"
    paths: [/, /var]
"""

RETURN = r"""
free_mib:
  description: Space for ordinary users by path, in MiB; 0 for a path that is missing.
  type: dict
  returned: always
memory_mib:
  description: Physical memory, in MiB.
  type: int
  returned: always
time_offset_s:
  description: Seconds by which the host's clock is ahead; negative if behind.
  type: float
  returned: always
hostname:
  description: The kernel's host name, without domain.
  type: str
  returned: always
uid:
  description: User that tasks run as.
  type: int
  returned: always
systemd:
  description: Whether systemd is the init system and runs.
  type: bool
  returned: always
package_lock_holder:
  description: Who still installs packages after the wait; empty if nobody.
  type: str
  returned: always
packages_pending:
  description: Whether dpkg was cut short and must configure packages.
  type: bool
  returned: always
package_error:
  description: Why the package manager does not work; empty if it does.
  type: str
  returned: always
munge_key_sha256:
  description: SHA-256 of the host's munge key; empty if it has none, or none that may be read.
  type: str
  returned: always
cgroup_problem:
  description: Why Slurm cannot confine jobs here by cgroup v2; empty if it can.
  type: str
  returned: always
slurm_configured:
  description: Whether slurmctld was configured here, by hpcsite or by somebody else.
  type: bool
  returned: always
"""

# The lock that apt and dpkg take first (apt 1.9.11, dpkg 1.20 and newer). dnf's own
# modules wait for its lock.
DPKG_LOCK = "/var/lib/dpkg/lock-frontend"
DPKG_UPDATES = "/var/lib/dpkg/updates"
MUNGE_KEY = "/etc/munge/munge.key"
SLURM_FILES = ("/var/lib/hpcsite/slurmctld-applied.json", "/etc/slurm/slurm.conf")
# What task/cgroup and jobacct_gather/cgroup need (cgroup.conf(5)).
NEEDED_CONTROLLERS = ("cpu", "cpuset", "memory")
# The first systemd that hands cpuset on (its NEWS), which Slurm leaves to it (cgroup_v2.html).
SYSTEMD_WITH_CPUSET = 244
# systemd as PID 1 writes there what kind of container it is in (systemd's CONTAINER_INTERFACE).
CONTAINER = "/run/systemd/container"
# struct flock of fcntl(2) on 64-bit Linux: type, whence, start, length, pid.
_FLOCK = "hhqqi4x"


def free_mib(path: str) -> int:
    """Space for ordinary users, in MiB; 0 if the path is missing."""
    try:
        status = os.statvfs(path)
    except OSError:
        return 0
    return status.f_bavail * status.f_frsize // 2**20


def memory_mib(meminfo: str) -> int:
    """Memory in the text of /proc/meminfo, in MiB."""
    for line in meminfo.splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) // 1024
    return 0


def lock_holder(path: str) -> str:
    """Program that holds dpkg's lock, "name (pid)"; empty if nobody does or there is no dpkg."""
    try:
        with Path(path).open("rb") as handle:
            query = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            answer = struct.unpack(_FLOCK, fcntl.fcntl(handle, fcntl.F_GETLK, query))
    except OSError:
        return ""
    if answer[0] == fcntl.F_UNLCK:
        return ""
    try:
        name = Path(f"/proc/{answer[4]}/comm").read_text(encoding="utf-8").strip()
    except OSError:
        name = "a process"
    return f"{name} (pid {answer[4]})"


def wait_for_lock(path: str, wait_s: float) -> str:
    """Wait until nobody holds the lock; returns who still does."""
    deadline = time.monotonic() + wait_s
    holder = lock_holder(path)
    while holder and time.monotonic() < deadline:
        time.sleep(1)
        holder = lock_holder(path)
    return holder


def package_state(module: AnsibleModule) -> dict[str, object]:
    """Whether dpkg or rpm works, and whether dpkg has something left to do."""
    dpkg, rpm = module.get_bin_path("dpkg"), module.get_bin_path("rpm")
    if dpkg:
        code, out, error = module.run_command([dpkg, "--audit"])
        pending = bool(out.strip()) or any(Path(DPKG_UPDATES).glob("*"))
        return {"packages_pending": pending, "package_error": error.strip() if code else ""}
    if rpm:
        code, out, error = module.run_command([rpm, "--query", "rpm"])
        return {"packages_pending": False, "package_error": (error or out).strip() if code else ""}
    return {"packages_pending": False, "package_error": "neither dpkg nor rpm is there"}


def sha256_of(path: str) -> str:
    """SHA-256 of a file, in hexadecimal digits; empty if it cannot be read."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


def cgroup_problem(mounts: str, controllers: str | None, container: str, systemd: str) -> str:
    """Why Slurm cannot confine jobs by cgroup v2; empty if it can.

    `mounts` is the text of /proc/self/mounts, `controllers` that of /sys/fs/cgroup's
    cgroup.controllers (None where there is no such file), `container` the kind of container that
    the host is (empty for none), `systemd` what `systemctl --version` prints.
    """
    kinds = {line.split()[2] for line in mounts.splitlines() if len(line.split()) > 2}
    boot = "boot it without systemd.unified_cgroup_hierarchy=0 on the kernel's command line"
    if controllers is None:
        if "cgroup" in kinds and "cgroup2" in kinds:
            return f"it runs cgroup v1 and v2 side by side (hybrid), which Slurm cannot use; {boot}"
        if "cgroup" in kinds:
            return f"it runs cgroup v1; {boot}"
        return "no cgroups are mounted at /sys/fs/cgroup"
    missing = [name for name in NEEDED_CONTROLLERS if name not in controllers.split()]
    if missing:
        what = f"it has no cgroup v2 controllers {', '.join(missing)}"
        if container:
            return (
                f"{what}: it is a container ({container}), and its host does not delegate them, "
                "or binds them to cgroup v1"
            )
        if "cgroup" in kinds:
            return f"{what}: cgroup v1 has them; {boot}"
        return f"{what}: the kernel lacks them, or its command line disables them (cgroup_disable)"
    version = systemd.split()[1] if systemd.startswith("systemd ") else ""
    if version.isdigit() and int(version) < SYSTEMD_WITH_CPUSET:
        return f"its systemd {version} does not delegate cpuset: {SYSTEMD_WITH_CPUSET} is needed"
    return ""


def look_at_cgroups(module: AnsibleModule) -> str:
    """Why Slurm cannot confine jobs on this host by cgroup v2; empty if it can."""
    _, systemd, _ = module.run_command(["systemctl", "--version"])
    mounts = read("/proc/self/mounts") or ""
    controllers = read("/sys/fs/cgroup/cgroup.controllers")
    return cgroup_problem(mounts, controllers, (read(CONTAINER) or "").strip(), systemd)


def read(path: str) -> str | None:
    """Text of a file; None if it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return None


def main() -> None:
    """Look, and say what was seen."""
    module = AnsibleModule(
        argument_spec={
            "now": {"type": "float", "required": True},
            "paths": {"type": "list", "elements": "str", "required": True},
            "package_lock_wait_s": {"type": "int", "default": 120},
        },
        supports_check_mode=True,
    )
    offset = time.time() - module.params["now"]
    module.exit_json(
        changed=False,
        time_offset_s=round(offset, 1),
        free_mib={path: free_mib(path) for path in module.params["paths"]},
        memory_mib=memory_mib(Path("/proc/meminfo").read_text(encoding="utf-8")),
        hostname=os.uname().nodename.split(".")[0],
        uid=os.geteuid(),
        systemd=Path("/run/systemd/system").is_dir(),
        package_lock_holder=wait_for_lock(DPKG_LOCK, module.params["package_lock_wait_s"]),
        munge_key_sha256=sha256_of(MUNGE_KEY),
        slurm_configured=any(Path(path).exists() for path in SLURM_FILES),
        cgroup_problem=look_at_cgroups(module),
        **package_state(module),
    )


if __name__ == "__main__":
    main()
