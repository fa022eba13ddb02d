"""The fabric: a process that connects the machines' links, as a switch connects cables.

It is a qemu without a machine. Links are added and removed while it runs, so that a machine that
comes or goes does not disturb the others; and as the machines listen and the hub connects, a hub
that was killed is replaced without a restart of any machine.
"""

import os
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from hpcsite.errors import CouldNotRunError
from hpcsite.image import tools
from hpcsite.lab.qemu import folder, qmp
from hpcsite.lab.qemu.command import hub_command
from hpcsite.lab.qemu.folder import FabricFolder
from hpcsite.lab.qemu.qmp import Monitor

MONITOR = "hub.monitor"
_SECONDS = 30.0
_POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Link:
    """One machine's link, as the hub has it: the process that it was made to, and its state."""

    node: str
    pid: int
    connected: bool


def running(fabric: FabricFolder) -> bool:
    """Tell whether the hub runs."""
    return folder.process(fabric.mark) is not None


def connect(fabric: FabricFolder, node: str, pid: int) -> None:
    """Connect a machine's process to the fabric; starts the hub where none runs.

    Raises:
        CouldNotRunError: the hub or the machine does not answer.
    """
    _ensure(fabric)
    with qmp.connected(fabric.folder, MONITOR, _SECONDS) as monitor:
        for link in _links(monitor):
            if link.node == node:
                if link.connected and link.pid == pid:
                    return
                _cut(monitor, link)
        monitor.execute(
            "netdev_add",
            type="stream",
            id=f"s-{node}-{pid}",
            server=False,
            addr={"type": "unix", "path": folder.link(node)},
        )
        monitor.execute(
            "netdev_add", type="hubport", id=f"h-{node}-{pid}", hubid=0, netdev=f"s-{node}-{pid}"
        )


def end(fabric: FabricFolder) -> None:
    """End the hub."""
    folder.kill(fabric.mark)


def parse_links(text: str) -> list[Link]:
    """Read what qemu's monitor says to `info network`."""
    found = re.finditer(r"\bs-([A-Za-z0-9-]+)-(\d+): index=\d+,type=stream,(\S*)", text)
    return [Link(match[1], int(match[2]), bool(match[3])) for match in found]


def _links(monitor: Monitor) -> list[Link]:
    text = monitor.execute("human-monitor-command", **{"command-line": "info network"})
    return parse_links(str(text))


def _cut(monitor: Monitor, link: Link) -> None:
    for kind in ("h", "s"):
        monitor.execute("netdev_del", id=f"{kind}-{link.node}-{link.pid}")


def _ensure(fabric: FabricFolder) -> None:
    if not running(fabric):
        _launch(fabric)
    deadline = time.monotonic() + _SECONDS
    while True:
        try:
            with qmp.connected(fabric.folder, MONITOR, _SECONDS):
                return
        except CouldNotRunError as error:
            if time.monotonic() > deadline or not running(fabric):
                said = _log(fabric).read_text(encoding="utf-8", errors="replace").strip()
                raise CouldNotRunError(
                    f"the fabric's hub does not start: {said or error}",
                    hint="hpcsite lab down, then up again",
                ) from error
            time.sleep(_POLL_SECONDS)


def _log(fabric: FabricFolder) -> Path:
    return fabric.folder / "hub.log"


def _launch(fabric: FabricFolder) -> None:
    (fabric.folder / MONITOR).unlink(missing_ok=True)
    with _log(fabric).open("wb") as log:
        # Not `-daemonize`: that leaves the folder, in which the sockets' names are looked up.
        started = subprocess.Popen(
            hub_command(fabric, MONITOR),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PATH": tools.search_path()},
            cwd=fabric.folder,
            start_new_session=True,
        )
    # Popen may return while the kernel still loads the program, which is unknown until then.
    while started.poll() is None and not folder.is_marked(started.pid, fabric.mark):
        time.sleep(0.01)
