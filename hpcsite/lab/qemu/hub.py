"""The fabric: a process that connects the machines' links, as a switch connects cables.

It is a qemu without a machine. Links are added and removed while it runs, so that a machine that
comes or goes does not disturb the others; and as the machines listen and the hub connects, a hub
that was killed is replaced without a restart of any machine.
"""

import re
import time
from dataclasses import dataclass

from hpcsite.errors import CouldNotRunError
from hpcsite.lab.qemu import folder, qmp
from hpcsite.lab.qemu.command import hub_command
from hpcsite.lab.qemu.folder import FabricFolder
from hpcsite.lab.qemu.launch import launch
from hpcsite.lab.qemu.qmp import Monitor

MONITOR = "hub.monitor"
_SECONDS = 30.0
_CONNECT_SECONDS = 3.0
_POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Link:
    """One machine's link: the process that it was made to, and how far it is made."""

    node: str
    pid: int
    connected: bool
    in_hub: bool  # the last step


def running(fabric: FabricFolder) -> bool:
    """Tell whether the hub runs."""
    return folder.process(fabric.mark) is not None


def connect(fabric: FabricFolder, node: str, pid: int) -> None:
    """Connect a machine's process to the fabric; starts the hub where none runs.

    Raises:
        CouldNotRunError: the hub or the machine does not answer.
    """
    if not running(fabric):
        argv = hub_command(fabric, MONITOR)
        log = fabric.folder / "hub.log"
        launch(argv, fabric, mark=fabric.mark, monitor=MONITOR, log=log)
    with qmp.connected(fabric.folder, MONITOR, _SECONDS) as monitor:
        for link in _links(monitor):
            if link.node == node:
                if link == Link(node, pid, connected=True, in_hub=True):
                    return
                _cut(monitor, link)
        _add(monitor, fabric, node, pid)


def end(fabric: FabricFolder) -> None:
    """End the hub."""
    folder.kill(fabric.mark)


def parse_links(text: str) -> list[Link]:
    """Read what qemu's monitor says to `info network`."""
    found = re.finditer(r"(\bh-\S+: )?\bs-([A-Za-z0-9-]+)-(\d+): index=\d+,type=stream,(\S*)", text)
    return [
        Link(match[2], int(match[3]), connected=bool(match[4]), in_hub=bool(match[1]))
        for match in found
    ]


def _links(monitor: Monitor) -> list[Link]:
    text = monitor.execute("human-monitor-command", **{"command-line": "info network"})
    return parse_links(str(text))


def _cut(monitor: Monitor, link: Link) -> None:
    if link.in_hub:
        monitor.execute("netdev_del", id=_port(link.node, link.pid))
    monitor.execute("netdev_del", id=_stream(link.node, link.pid))


def _add(monitor: Monitor, fabric: FabricFolder, node: str, pid: int) -> None:
    """Add a link to the hub once it is connected.

    qemu 7.2 ends at a packet for a link whose connection failed.
    """
    name = folder.link(node)
    address = {"type": "unix", "path": name}
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        if not (fabric.folder / name).is_socket():
            time.sleep(_POLL_SECONDS)
            continue
        stream = _stream(node, pid)
        monitor.execute("netdev_add", type="stream", id=stream, server=False, addr=address)
        if _connects(monitor, node, pid):
            monitor.execute(
                "netdev_add", type="hubport", id=_port(node, pid), hubid=0, netdev=stream
            )
            return
        monitor.execute("netdev_del", id=stream)
    raise CouldNotRunError(
        "the machine cannot be connected to the fabric", hint="hpcsite lab down, then up again"
    )


def _connects(monitor: Monitor, node: str, pid: int) -> bool:
    deadline = time.monotonic() + _CONNECT_SECONDS
    while time.monotonic() < deadline:
        if Link(node, pid, connected=True, in_hub=False) in _links(monitor):
            return True
        time.sleep(_POLL_SECONDS)
    return False


def _stream(node: str, pid: int) -> str:
    return f"s-{node}-{pid}"


def _port(node: str, pid: int) -> str:
    return f"h-{node}-{pid}"
