"""What the console of a virtual machine says of one that does not answer."""

from pathlib import Path

from hpcsite.lab import console

# What a kernel, its initrd or systemd prints before it waits for somebody at the console.
_STUCK = {
    "Kernel panic - not syncing": "its kernel gave up",
    "(initramfs)": "its initrd found no system to start",
    "You are in emergency mode": "it is in emergency mode",
}
# After this a machine may go on, or not.
_FAULTS = {"Oops: ": "its kernel met a fault"}


def stuck(path: Path) -> str:
    """Tell why a running machine will never come up; empty if nothing says so."""
    return _found(path, _STUCK)


def trouble(path: Path) -> str:
    """Tell why a machine that runs may not answer; empty if nothing says so."""
    return _found(path, _STUCK | _FAULTS)


def _found(path: Path, signs: dict[str, str]) -> str:
    text = console.read(path)
    return next((why for sign, why in signs.items() if sign in text), "")
