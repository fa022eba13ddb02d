"""Starting a qemu in the fabric's folder, and seeing that it did start."""

import os
import subprocess
import time
from pathlib import Path

from hpcsite.errors import CouldNotRunError
from hpcsite.image import tools
from hpcsite.lab.qemu import folder, qmp
from hpcsite.lab.qemu.folder import FabricFolder

_SECONDS = 60.0
_POLL_SECONDS = 0.1


def launch(argv: list[str], fabric: FabricFolder, *, mark: str, monitor: str, log: Path) -> None:
    """Start a qemu and wait until its monitor answers.

    Not by `-daemonize`: that leaves the folder in which the sockets' names are looked up, and a
    link's socket is made by a thread that may come too late for it.

    Raises:
        CouldNotRunError: it ended; carries what it said.
    """
    (fabric.folder / monitor).unlink(missing_ok=True)
    with log.open("wb") as output:
        started = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "LC_ALL": "C.UTF-8", "PATH": tools.search_path()},
            cwd=fabric.folder,
            start_new_session=True,
        )
    # Popen may return while the kernel still loads the program, which is unknown until then.
    while started.poll() is None and not folder.is_marked(started.pid, mark):
        time.sleep(0.01)
    deadline = time.monotonic() + _SECONDS
    while True:
        try:
            with qmp.connected(fabric.folder, monitor, _SECONDS):
                return
        except CouldNotRunError as error:
            if started.poll() is not None or time.monotonic() > deadline:
                folder.kill(mark)
                said = log.read_text(encoding="utf-8", errors="replace").strip()
                raise CouldNotRunError(f"qemu does not start:\n{said or error}") from error
            time.sleep(_POLL_SECONDS)
