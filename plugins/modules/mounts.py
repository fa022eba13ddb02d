#!/usr/bin/python
"""Keep systemd's mount and automount units mounted as their files say, without forcing anybody."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NoReturn

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: mounts
short_description: Mount units that are enabled and mounted as their files say
description:
  - Has systemd read what changed, enables the units and mounts what is not mounted.
  - A unit whose file is younger than its mount is unmounted and mounted again, if nobody uses it.
    This holds also when an earlier deploy was killed between writing and mounting. One that is in
    use stays as it is until it can be unmounted, by a later deploy or a reboot; it is in
    RV(in_use), and RV(msg) says so.
  - Never unmounts by force or lazily.
options:
  units:
    description: The units, outer mounts before those inside of them.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: The mount unit without its suffix, as C(systemd-escape --path) writes it.
        type: str
        required: true
      automount:
        description: Whether it is mounted at its first use, by an automount unit of that name.
        type: bool
        default: false
  remove:
    description: Whole names of units that are to be unmounted and removed.
    type: list
    elements: str
    default: []
  read_anew:
    description: Further units whose files systemd must have read.
    type: list
    elements: str
    default: []
  folder:
    description: Where the units' files are.
    type: path
    default: /etc/systemd/system
author: hpcsite
"""

EXAMPLES = """
- name: Mount
  mounts:
    units:
      - {name: home}
      - {name: shared, automount: true}
    remove: [old.mount]
"""

RETURN = """
actions:
  description: What was done, or would be in check mode.
  returned: always
  type: list
  sample: ["mount home"]
in_use:
  description: Units that must be mounted anew, or unmounted, and are in use.
  returned: always
  type: list
msg:
  description: What to do about those in use; empty if there are none.
  returned: always
  type: str
"""

PROPERTIES = (
    *("LoadState", "ActiveState", "UnitFileState", "NeedDaemonReload", "Where"),
    "ActiveEnterTimestampMonotonic",
)
MOUNTED = ("active", "reloading")
# States of a unit file that `systemctl enable` would change.
NOT_ENABLED = ("disabled", "indirect", "enabled-runtime", "linked", "")
Properties = dict[str, str]


def parse_properties(text: str) -> Properties:
    """Properties in the output of C(systemctl show)."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def is_stale(entered_monotonic_us: int, changed: float, now: float, monotonic: float) -> bool:
    """Whether a file changed after a unit came up. Times in seconds, the unit's in microseconds."""
    return changed > now - (monotonic - entered_monotonic_us / 1e6)


class Mounts:
    """The units of a host."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.folder = Path(module.params["folder"])
        self.systemctl: str = module.get_bin_path("systemctl", required=True)
        self.actions: list[str] = []
        self.in_use: list[str] = []

    def call(self, *argv: str) -> tuple[int, str]:
        """Run systemctl; returns its code and what it complains of."""
        code, _, err = self.module.run_command([self.systemctl, *argv])
        return code, err.strip()

    def show(self, unit: str) -> Properties:
        """Read a unit's properties."""
        argv = [self.systemctl, "show", unit, "--property=" + ",".join(PROPERTIES)]
        return parse_properties(self.module.run_command(argv)[1])

    def do(self, action: str, unit: str) -> bool:
        """Note a step, and take it unless this is a check; returns whether it worked."""
        self.actions.append(f"{action} {unit}")
        return self.module.check_mode or self.call(action, unit)[0] == 0

    def read_anew(self) -> None:
        """Have systemd read units that are new or changed."""
        units = [unit for entry in self.module.params["units"] for unit in names(entry)]
        states = [self.show(unit) for unit in (*units, *self.module.params["read_anew"])]
        changed = [s for s in states if s.get("NeedDaemonReload") == "yes" or is_unread(s)]
        if changed and not self.module.check_mode:
            self.call("daemon-reload")

    def remove(self, unit: str) -> None:
        """Unmount and forget a unit; one that is in use stays until later, not enabled."""
        state = self.show(unit)
        busy = state.get("ActiveState") in MOUNTED and not self.give_up(unit)
        if state.get("UnitFileState") == "enabled":
            self.do("disable", unit)
        if busy:
            self.in_use.append(unit)
            return
        self.actions.append(f"remove {unit}")
        if not self.module.check_mode:
            (self.folder / unit).unlink(missing_ok=True)

    def keep(self, entry: dict[str, Any]) -> None:
        """Bring one mount to where its file says."""
        mount, *automount = names(entry)
        first = automount[0] if automount else mount
        state = self.show(mount)
        if automount and not self.is_mounted(first):
            # An automount cannot come up over a plain mount.
            if state.get("ActiveState") in MOUNTED and not self.unmount(mount):
                self.in_use.append(mount)
            else:
                self.enable(first)
                self.start(first)
        elif state.get("ActiveState") in MOUNTED and self.is_old(mount, state):
            if not self.unmount(mount):
                self.in_use.append(mount)
            elif not automount:
                self.start(mount)
        elif not automount and state.get("ActiveState") not in MOUNTED:
            self.start(mount)
        self.enable(first)
        if automount and state.get("UnitFileState") == "enabled":
            self.do("disable", mount)

    def is_mounted(self, unit: str) -> bool:
        """Whether a unit is up."""
        return self.show(unit).get("ActiveState") in MOUNTED

    def is_old(self, unit: str, state: Properties) -> bool:
        """Whether a unit is mounted by an older file than the present one."""
        path = self.folder / unit
        entered = int(state.get("ActiveEnterTimestampMonotonic") or 0)
        if not entered or not path.exists():
            return False
        return is_stale(entered, path.stat().st_mtime, time.time(), time.monotonic())

    def enable(self, unit: str) -> None:
        """Have a unit come up at boot."""
        if self.show(unit).get("UnitFileState", "") in NOT_ENABLED and not self.do("enable", unit):
            self.fail(f"{unit} cannot be enabled")

    def give_up(self, unit: str) -> bool:
        """Try to unmount a unit, and before an automount what it has mounted.

        Systemd detaches that when an automount is stopped, whoever uses it (automount.c).
        """
        stem, _, kind = unit.rpartition(".")
        mount = f"{stem}.mount"
        if kind == "automount" and self.is_mounted(mount) and not self.unmount(mount):
            return False
        return self.unmount(unit)

    def unmount(self, unit: str) -> bool:
        """Try to unmount; returns whether it worked. What is in use stays mounted."""
        if self.module.check_mode:
            return self.do("stop", unit)
        if self.call("stop", unit)[0] or self.is_mounted(unit):
            return False
        self.actions.append(f"stop {unit}")
        return True

    def start(self, unit: str) -> None:
        """Mount, or fail with the end of the unit's journal."""
        if not self.module.check_mode:
            # A unit that failed too often in a row would refuse to start for a while.
            self.call("reset-failed", unit)
        if not self.do("start", unit):
            argv = ["journalctl", "--unit", unit, "--lines=15", "--no-pager", "--output=cat"]
            _, journal, _ = self.module.run_command(argv)
            self.fail(f"{unit} does not come up. The end of its journal:\n{journal.strip()}")

    def fail(self, what: str) -> NoReturn:
        """End with what is wrong."""
        self.module.fail_json(msg=what, actions=self.actions, in_use=self.in_use)
        raise SystemExit(1)


def names(entry: dict[str, Any]) -> list[str]:
    """Units of a mount: the mount's own, then the automount's if there is one."""
    unit = entry["name"]
    return [f"{unit}.mount", *([f"{unit}.automount"] if entry["automount"] else [])]


def depth(unit: str) -> tuple[list[str], str]:
    """Sort units by their folders, outer ones first, and an automount before its mount."""
    stem, _, kind = unit.rpartition(".")
    return stem.split("-"), kind


def is_unread(state: Properties) -> bool:
    """Whether systemd knows a mount from the kernel only, or not at all."""
    return state.get("LoadState") == "not-found" or state.get("UnitFileState", "") == ""


def message(in_use: list[str]) -> str:
    """Say what to do about mounts that are in use."""
    if not in_use:
        return ""
    return (
        f"{', '.join(in_use)}: in use, so the change waits. It takes effect when a deploy finds "
        "nobody there, or with the next reboot; drain the node first if jobs run on it"
    )


def main() -> None:
    """Run the module."""
    unit = {
        "name": {"type": "str", "required": True},
        "automount": {"type": "bool", "default": False},
    }
    module = AnsibleModule(
        argument_spec={
            "units": {"type": "list", "elements": "dict", "required": True, "options": unit},
            "remove": {"type": "list", "elements": "str", "default": []},
            "read_anew": {"type": "list", "elements": "str", "default": []},
            "folder": {"type": "path", "default": "/etc/systemd/system"},
        },
        supports_check_mode=True,
    )
    mounts = Mounts(module)
    # Inner mounts first: an outer one cannot be unmounted before.
    for name in sorted(module.params["remove"], key=depth, reverse=True):
        mounts.remove(name)
    if module.params["remove"] and not module.check_mode:
        mounts.call("daemon-reload")
    mounts.read_anew()
    for entry in module.params["units"]:
        mounts.keep(entry)
    module.exit_json(
        changed=bool(mounts.actions),
        actions=mounts.actions,
        in_use=mounts.in_use,
        msg=message(mounts.in_use),
    )


if __name__ == "__main__":
    main()
