#!/usr/bin/python
"""Keep a systemd service running on its present configuration, or say why it does not run."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path
from typing import NoReturn

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: daemon
short_description: A systemd service that runs on its present configuration
description:
  - Enables a service and starts it where it does not run.
  - Restarts it where one of O(files) is younger than the service's process. This holds also when
    an earlier deploy was killed between writing a file and restarting, which a handler would miss.
  - Waits until the service is active and, with O(port), until it listens.
  - When it does not come up, the message ends with the end of its journal.
options:
  name:
    description: The unit, without C(.service).
    type: str
    required: true
  files:
    description: Files that the service reads when it starts. One that is missing does not count.
    type: list
    elements: path
    default: []
  restart:
    description: Restart it whatever its files say.
    type: bool
    default: false
  port:
    description: TCP port on which it must listen on this host.
    type: int
  timeout_s:
    description: Seconds in which it must be up.
    type: int
    default: 60
  journal_lines:
    description: Lines of its journal that a failure shows.
    type: int
    default: 30
author: hpcsite
"""

EXAMPLES = """
- name: Run slurmdbd
  daemon:
    name: slurmdbd
    files: [/etc/slurm/slurmdbd.conf]
    port: 6819
"""

RETURN = """
action:
  description: What was done, or would be in check mode.
  returned: always
  type: str
  sample: none, start, restart
younger:
  description: Those of the files that changed since the service started.
  returned: always
  type: list
"""

PROPERTIES = (
    "LoadState",
    "ActiveState",
    "UnitFileState",
    "NeedDaemonReload",
    "ConditionResult",
    "ExecMainStartTimestampMonotonic",
)
RUNNING = ("active", "reloading", "refreshing")
# States of a unit file that `systemctl enable` would change.
NOT_ENABLED = ("disabled", "indirect", "enabled-runtime", "linked", "")


def parse_properties(text: str) -> dict[str, str]:
    """Properties in the output of C(systemctl show)."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def is_stale(started_monotonic_us: int, files: list[str], now: float, monotonic: float) -> bool:
    """Whether a file is younger than a process. Times in seconds, the start in microseconds."""
    return bool(younger_files(started_monotonic_us, files, now, monotonic))


def younger_files(
    started_monotonic_us: int, files: list[str], now: float, monotonic: float
) -> list[str]:
    """Files that changed since a process started."""
    started = now - (monotonic - started_monotonic_us / 1e6)
    there = [file for file in files if Path(file).exists()]
    return [file for file in there if Path(file).stat().st_mtime > started]


class Daemon:
    """A service, as systemd shows it."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.name: str = module.params["name"]
        self.deadline = time.monotonic() + module.params["timeout_s"]
        self.systemctl: str = module.get_bin_path("systemctl", required=True)
        self.state = self.show()

    def show(self) -> dict[str, str]:
        """Read the unit's properties."""
        argv = [self.systemctl, "show", self.name, "--property=" + ",".join(PROPERTIES)]
        _, out, _ = self.module.run_command(argv)
        return parse_properties(out)

    def needed(self) -> str:
        """Find what the unit needs: none, start or restart."""
        if self.state.get("ActiveState") not in RUNNING:
            return "start"
        return "restart" if self.module.params["restart"] or self.younger() else "none"

    def younger(self) -> list[str]:
        """Find the files that the running service has not read."""
        started = int(self.state.get("ExecMainStartTimestampMonotonic") or 0)
        if not started or self.state.get("ActiveState") not in RUNNING:
            return []
        files: list[str] = self.module.params["files"]
        return younger_files(started, files, time.time(), time.monotonic())

    def enable(self) -> None:
        """Have the unit start at boot."""
        code, _, err = self.module.run_command([self.systemctl, "enable", self.name])
        if code:
            self.fail(f"cannot be enabled: {err.strip()}")

    def apply(self, action: str) -> None:
        """Start or restart the unit and wait for systemd's word that it is up."""
        if self.state.get("NeedDaemonReload") == "yes":
            self.module.run_command([self.systemctl, "daemon-reload"])
        # A unit that failed too often in a row would refuse to start for a while.
        self.module.run_command([self.systemctl, "reset-failed", self.name])
        # The time is the service's own: enabling it and reading all units again can take minutes
        # on a slow machine.
        self.deadline = time.monotonic() + self.module.params["timeout_s"]
        argv = [self.systemctl, action, self.name]
        try:
            subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=max(1.0, self.deadline - time.monotonic()),
                check=False,
            )
        except subprocess.TimeoutExpired:
            self.fail(f"is not up within {self.module.params['timeout_s']} s")
        self.state = self.show()
        if self.state.get("ConditionResult") == "no":
            self.fail("was not started: a condition of its unit does not hold")
        if self.state.get("ActiveState") not in RUNNING:
            self.fail("does not run")

    def wait_for_port(self, port: int) -> None:
        """Wait until something listens on a TCP port of this host."""
        while not listens(port):
            if self.show().get("ActiveState") not in RUNNING:
                self.fail("ended soon after its start")
            if time.monotonic() > self.deadline:
                self.fail(f"runs but does not listen on port {port}")
            time.sleep(0.1)

    def fail(self, what: str) -> NoReturn:
        """End with what is wrong and the end of the unit's journal."""
        lines = str(self.module.params["journal_lines"])
        argv = ["journalctl", "--unit", self.name, "--lines", lines, "--no-pager", "--output=cat"]
        _, journal, _ = self.module.run_command(argv)
        text = journal.strip() or "(it is empty)"
        self.module.fail_json(msg=f"{self.name} {what}. The end of its journal:\n{text}")
        raise SystemExit(1)


def listens(port: int) -> bool:
    """Whether a TCP port of this host accepts a connection."""
    try:
        socket.create_connection(("localhost", port), timeout=1).close()
    except OSError:
        return False
    return True


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "files": {"type": "list", "elements": "path", "default": []},
            "restart": {"type": "bool", "default": False},
            "port": {"type": "int"},
            "timeout_s": {"type": "int", "default": 60},
            "journal_lines": {"type": "int", "default": 30},
        },
        supports_check_mode=True,
    )
    daemon = Daemon(module)
    action, younger = daemon.needed(), daemon.younger()
    enable = daemon.state.get("UnitFileState", "") in NOT_ENABLED
    if not module.check_mode:
        if daemon.state.get("LoadState") == "not-found":
            module.fail_json(msg=f"there is no unit {daemon.name}.service")
        if enable:
            daemon.enable()
        if action != "none":
            daemon.apply(action)
        if module.params["port"]:
            daemon.wait_for_port(module.params["port"])
    module.exit_json(changed=enable or action != "none", action=action, younger=younger)


if __name__ == "__main__":
    main()
