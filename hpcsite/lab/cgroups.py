"""Which cgroup v2 controllers the kernel gives to machines."""

from pathlib import Path

from hpcsite.image import mounts
from hpcsite.slurm.hardware import NEEDED_CONTROLLERS


def controllers(pid: int) -> list[str]:
    """Return the cgroup v2 controllers of a process, as the host sees them."""
    try:
        groups = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8")
    except OSError:
        return []
    point = next((mount.point for mount in mounts.mounted() if mount.type == "cgroup2"), None)
    own = unified_path(groups)
    if point is None or own is None:
        return []
    try:
        text = (point / own.lstrip("/") / "cgroup.controllers").read_text(encoding="utf-8")
    except OSError:
        return []
    return text.split()


def unified_path(groups: str) -> str | None:
    """Return the cgroup v2 path from the text of /proc/<pid>/cgroup (cgroups(7))."""
    return next((line[3:] for line in groups.splitlines() if line.startswith("0::")), None)


def host_runs_v1() -> bool:
    """Tell whether the host binds controllers to cgroup v1."""
    return any(mount.type == "cgroup" for mount in mounts.mounted())


def in_words(found: list[str], *, v1: bool) -> str:
    """Return what the controllers mean for Slurm in the lab."""
    missing = NEEDED_CONTROLLERS - set(found)
    if not missing:
        return f"cgroup v2 controllers: {' '.join(found)}; Slurm here uses proctrack/cgroup"
    what = f"no cgroup v2 controllers {', '.join(sorted(missing))}"
    why = " (host runs cgroup v1)" if v1 else " (the host hands them on to nobody)"
    return f"{what}{why}: Slurm here uses proctrack/linuxproc"
