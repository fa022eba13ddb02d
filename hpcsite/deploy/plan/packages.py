"""What package managers say that they would do, by action."""

import re
from typing import Any, Literal

Action = Literal["install", "upgrade", "remove"]

# `apt-get --simulate`: "Inst name [old version] (new version …)", "Remv name [version]".
_APT = re.compile(r"^(?P<what>Inst|Remv) (?P<name>\S+)(?P<old> \[[^\]]+\])?", re.MULTILINE)
# Ansible's module dnf: "Installed: name-version", "Removed: name-version".
_DNF = re.compile(r"^(?P<what>Installed|Upgraded|Removed): (?P<name>\S+)")
_DNF_ACTIONS: dict[str, Action] = {
    "Installed": "install",
    "Upgraded": "upgrade",
    "Removed": "remove",
}


def read(result: dict[str, Any]) -> dict[Action, tuple[str, ...]]:
    """Read packages by action in a result of `missing_packages`, `apt` or `dnf`."""
    found: dict[Action, list[str]] = {}
    if names := result.get("missing"):
        found["install"] = [str(name) for name in names]
    for match in _APT.finditer(str(result.get("stdout") or "")):
        found.setdefault(_apt_action(match), []).append(match["name"])
    for line in result.get("results") or ():
        if said := _DNF.match(str(line)):
            found.setdefault(_DNF_ACTIONS[said["what"]], []).append(said["name"])
    return {action: tuple(sorted(set(names))) for action, names in found.items()}


def _apt_action(match: re.Match[str]) -> Action:
    if match["what"] == "Remv":
        return "remove"
    return "upgrade" if match["old"] else "install"
