"""Kernel settings that labs need on this computer, put back when the last lab is gone."""

import contextlib
from dataclasses import dataclass
from pathlib import Path

from hpcsite.errors import CouldNotRunError
from hpcsite.image import files

# What a setting was before the first lab came. Gone with a restart, as the settings are.
_BEFORE = Path("/run/hpcsite/kernel")


@dataclass(frozen=True)
class Setting:
    """A setting below /proc/sys and the least that labs need of it."""

    name: str
    at_least: int

    @property
    def path(self) -> Path:
        """The setting's file."""
        return Path("/proc/sys") / self.name

    @property
    def before(self) -> Path:
        """Holds the setting's value before the first lab."""
        return _BEFORE / self.name.replace("/", ".")


SETTINGS = (
    Setting("net/ipv4/ip_forward", 1),
    # Every systemd takes several; 128, the kernel's default for all of root's together, is used
    # up by about fifteen machines, whose logins then hang.
    Setting("fs/inotify/max_user_instances", 8192),
)


def raise_settings(settings: tuple[Setting, ...] = SETTINGS) -> None:
    """Raise what is too low, and note what it was.

    Raises:
        CouldNotRunError: this computer does not allow it.
    """
    for setting in settings:
        before = setting.path.read_text(encoding="ascii").strip()
        if int(before) >= setting.at_least:
            continue
        if not setting.before.exists():
            setting.before.parent.mkdir(parents=True, exist_ok=True)
            files.write_atomically(setting.before, before)
        try:
            setting.path.write_text(str(setting.at_least), encoding="ascii")
        except OSError as error:
            raise CouldNotRunError(
                f"cannot set {setting.path} to {setting.at_least}: {error.strerror}",
                hint="a lab needs a computer of its own or a virtual machine; a container may not "
                "change the kernel's settings",
            ) from error


def restore_settings(settings: tuple[Setting, ...] = SETTINGS) -> None:
    """Put back what was raised, unless somebody has set it to something else since."""
    for setting in settings:
        if not setting.before.exists():
            continue
        if setting.path.read_text(encoding="ascii").strip() == str(setting.at_least):
            setting.path.write_text(setting.before.read_text(encoding="ascii"), encoding="ascii")
        setting.before.unlink()
    for folder in (_BEFORE, _BEFORE.parent):
        with contextlib.suppress(OSError):  # absent, or not only ours
            folder.rmdir()
