"""Which keys of cgroup.conf a site may set itself, and to what.

slurmd ends over a key of cgroup.conf that its release does not know, so a misspelled one would
take every node out. Keys and kinds are those of Slurm's own parser, src/interfaces/cgroup.c.
"""

from collections.abc import Callable, Iterator, Mapping

from hpcsite.site.names import did_you_mean
from hpcsite.site.parameters import Refusal, refused_parameters

_TRACKING = "use site_slurm_process_tracking in its place"
_SYSTEMD = "leave it: jobs' cgroups would be in the way of systemd's (cgroup.conf(5))"
_FIXED = "leave it: hpcsite uses cgroup v2 where systemd mounts it"

# Keys in lower case → what to do instead.
OWNED_OF_CGROUP: dict[str, str] = {
    "allowedkmemspace": _FIXED,
    "cgroupautomount": _FIXED,
    "cgroupmountpoint": _FIXED,
    "cgroupplugin": _TRACKING,
    "cgroupreleaseagentdir": _FIXED,
    "constrainkmemspace": _FIXED,
    "ignoresystemd": _SYSTEMD,
    "ignoresystemdonfailure": _SYSTEMD,
}
# s_p_handle_boolean of Slurm's parser.
_TRUE = ("yes", "up", "true", "1")
_FALSE = ("no", "down", "false", "0")
_YES_OR_NO = "yes or no"


def _boolean(text: str) -> bool:
    return text.lower() in _TRUE + _FALSE


def _number(text: str) -> bool:
    try:
        return float(text) >= 0
    except ValueError:
        return False


def _whole(text: str) -> bool:
    return text.isascii() and text.isdigit()


_PERCENT = (_number, "a number, in percent")
_KINDS: dict[str, tuple[Callable[[str], bool], str]] = {
    "AllowedRAMSpace": _PERCENT,
    "AllowedSwapSpace": _PERCENT,
    "CgroupJobIdPaths": (_boolean, _YES_OR_NO),
    "CgroupSlice": (bool, "a name"),
    "ConstrainCores": (_boolean, _YES_OR_NO),
    "ConstrainDevices": (_boolean, _YES_OR_NO),
    "ConstrainRAMSpace": (_boolean, _YES_OR_NO),
    "ConstrainSwapSpace": (_boolean, _YES_OR_NO),
    "EnableControllers": (_boolean, _YES_OR_NO),
    "EnableExtraControllers": (bool, "names of controllers"),
    "MaxRAMPercent": _PERCENT,
    "MaxSwapPercent": _PERCENT,
    "MemorySwappiness": (_whole, "a whole number"),
    "MinRAMSpace": (_whole, "a whole number of MiB"),
    "SignalChildrenProcesses": (_boolean, _YES_OR_NO),
    "SystemdTimeout": (_whole, "a whole number of milliseconds"),
}
# Keys that older releases than this do not know.
SINCE: dict[str, tuple[int, int]] = {
    "cgroupjobidpaths": (26, 5),
    "cgroupslice": (25, 11),
    "enableextracontrollers": (25, 5),
    "signalchildrenprocesses": (23, 2),
    "systemdtimeout": (24, 5),
}
_BY_NAME = {name.lower(): name for name in _KINDS}


def is_yes(value: object) -> bool:
    """Whether Slurm takes a value for yes."""
    return str(value).lower() in _TRUE


def refused_cgroup_parameters(parameters: Mapping[str, object]) -> dict[str, Refusal]:
    """Find the keys of `site_slurm_cgroup_parameters` that a site may not set so."""
    refused = dict(_unknown(parameters))
    return refused | refused_parameters(parameters, OWNED_OF_CGROUP)


def _unknown(parameters: Mapping[str, object]) -> Iterator[tuple[str, Refusal]]:
    for key, value in parameters.items():
        name = _BY_NAME.get(key.lower())
        if name is None:
            known = did_you_mean(key, _KINDS, f"known: {', '.join(_KINDS)}")
            message = f"{key} is no key of cgroup.conf that hpcsite knows"
            yield key, Refusal(message, known, code="HPC1216")
        elif value is not None and not _KINDS[name][0](str(value)):
            hint = f"it must be {_KINDS[name][1]}"
            yield key, Refusal(f"{key} cannot be {value}", hint, code="HPC1217")
