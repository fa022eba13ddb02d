"""What changes mean for nodes and jobs, as data.

A role that changes something else that needs a reboot says so by itself in check mode, with the
module `plan_effect`.
"""

from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Literal

from hpcsite.site.model import Host, Site
from hpcsite.slurm.conf import parse_slurm_conf


@dataclass(frozen=True)
class Pin:
    """A version of site_software that takes effect with a reboot; `fact` is of `running_state`."""

    key: str
    what: str
    fact: str
    hosts: Literal["gpu", "all"]


PINS = (
    Pin("nvidia_driver", "NVIDIA driver", "nvidia_driver", "gpu"),
    Pin("kernel", "kernel", "kernel", "all"),
)
# Files that the kernel or the boot loader reads while a machine boots, and never again.
REBOOT_FILES = (
    "/boot/*",
    "/etc/default/grub*",
    "/etc/dracut.conf*",
    "/etc/initramfs-tools/*",
    "/etc/kernel/cmdline",
    "/etc/modprobe.d/*",
)
# Keys of slurm.conf whose change jobs do not survive (slurm.conf(5)): a slurmd that looks elsewhere
# finds no job, and neither does a slurmctld.
JOB_KEYS = {
    "slurmdspooldir": "SlurmdSpoolDir changes: slurmd loses track of its jobs",
    "statesavelocation": "StateSaveLocation changes: slurmctld loses its jobs",
}
SLURM_CONF = "/etc/slurm/slurm.conf"
# Records of hpcsite itself: they say what was done, and no daemon reads them.
OWN_RECORDS = "/var/lib/hpcsite/*"


def pinned_elsewhere(site: Site, host: Host, facts: dict[str, str]) -> list[str]:
    """Say which pins a host does not have yet."""
    found = []
    for pin in PINS:
        wanted = getattr(site.keys.software, pin.key)
        if wanted is None or (pin.hosts == "gpu" and not has_gpus(site, host)):
            continue
        now = facts.get(pin.fact, "")
        if not (now == wanted or now.startswith(f"{wanted}.")):
            found.append(f"{pin.what} {now or 'none'} → {wanted}")
    return found


def has_gpus(site: Site, host: Host) -> bool:
    """Whether a host is in a node group with GPUs."""
    group = site.node_group_of(host)
    return group is not None and site.keys.node_groups[group].gpus is not None


def needs_reboot(path: str) -> bool:
    """Whether only a reboot applies a file."""
    return any(fnmatch(path, pattern) for pattern in REBOOT_FILES)


def is_own_record(path: str) -> bool:
    """Whether a file is hpcsite's own note."""
    return fnmatch(path, OWN_RECORDS)


def job_dangers(before: str, after: str) -> list[str]:
    """Say which changes of slurm.conf end all jobs; a first one has none to end."""
    if not before.strip():
        return []
    old, new = parse_slurm_conf(before).keys, parse_slurm_conf(after).keys
    return [why for key, why in JOB_KEYS.items() if old.get(key) != new.get(key)]


def reboot_needs(*, compute: bool) -> tuple[Literal["drain", "reboot"], ...]:
    """Say what a reboot takes: compute nodes are drained before."""
    return ("drain", "reboot") if compute else ("reboot",)
