"""Whether this computer runs virtual machines itself (KVM) or has to emulate them.

Only a guest that booted is proof: /dev/kvm may be there, and open, and run nothing. The answer is
remembered for as long as kernel, qemu and the user's access stay what they are.
"""

import json
import os
import platform
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from hpcsite.image import files, tools
from hpcsite.lab.qemu.command import SYSTEM, probe_command
from hpcsite.paths import cache_dir

DEVICE = Path("/dev/kvm")
_PROBE_SECONDS = 30.0
# What a kernel without a file system says last.
_BOOTED = "Unable to mount root fs"


@dataclass(frozen=True)
class Acceleration:
    """How virtual machines run here."""

    kvm: bool
    reason: str

    def in_words(self) -> str:
        """Return it as a user is told."""
        if self.kvm:
            return "virtual machines run by KVM"
        return f"virtual machines run by emulation, which is slow: {self.reason}"


def acceleration(kernel: Path) -> Acceleration:
    """Return how machines run here; boots a guest where that is not known yet."""
    with files.lock("kvm"):
        found = known()
        if found is None:
            found = _probe(kernel)
            _path().parent.mkdir(parents=True, exist_ok=True)
            answer = json.dumps({"key": _key(), **asdict(found)}, indent=2) + "\n"
            files.write_atomically(_path(), answer)
        return found


def known() -> Acceleration | None:
    """Return what is known without booting a guest; None if nothing is."""
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return Acceleration(kvm=False, reason=_no_access())
    try:
        text = _path().read_text(encoding="utf-8")
    except OSError:
        return None
    return parse_answer(text, _key())


def parse_answer(text: str, key: str) -> Acceleration | None:
    """Read a remembered answer; None if it was given under other circumstances."""
    try:
        answer = json.loads(text)
        if answer["key"] != key:
            return None
        return Acceleration(kvm=bool(answer["kvm"]), reason=str(answer["reason"]))
    except (ValueError, TypeError, KeyError):
        return None


def parse_probe(console: str, said: str) -> Acceleration:
    """Judge a guest by what it wrote on its console, and by what qemu said."""
    if _BOOTED in console:
        return Acceleration(kvm=True, reason="a guest booted")
    lines = [line for line in said.strip().splitlines() if line]
    detail = f" ({lines[-1]})" if lines else ""
    return Acceleration(
        kvm=False, reason=f"{DEVICE} can be opened, but a guest did not boot with it{detail}"
    )


def _no_access() -> str:
    if not DEVICE.exists():
        return f"this computer has no {DEVICE}"
    return f"you may not open {DEVICE}; on Debian and Ubuntu members of the group kvm may"


def _key() -> str:
    version = tools.attempt([SYSTEM, "--version"]).stdout.partition("\n")[0]
    device = DEVICE.stat()
    return json.dumps([platform.release(), platform.version(), version, device.st_rdev])


def _path() -> Path:
    return cache_dir() / "kvm.json"


def _probe(kernel: Path) -> Acceleration:
    with tempfile.TemporaryDirectory(prefix="hpcsite-kvm-") as folder:
        console = Path(folder) / "console.log"
        try:
            done = subprocess.run(
                probe_command(kernel, console),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=_PROBE_SECONDS,
                env={**os.environ, "PATH": tools.search_path()},
            )
            said = done.stderr
        except subprocess.TimeoutExpired:
            said = f"nothing came of it in {_PROBE_SECONDS:.0f} s"
        text = console.read_text(encoding="utf-8", errors="replace") if console.exists() else ""
        return parse_probe(text, said)
