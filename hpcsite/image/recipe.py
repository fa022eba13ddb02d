"""What goes into a root file system: a pure description with a digest of its own."""

import hashlib
import json
import shlex
from dataclasses import dataclass
from pathlib import Path

from hpcsite.image import namespace
from hpcsite.image.packages import ARCHIVES

# Raised when the same recipe must give a new image although nothing below says so.
SCHEMA = 1

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

# What a Debian server has after an installation with ssh, and nothing of what roles install.
# python3 and python3-apt are what Ansible needs on a Debian host. libpam-systemd is left out: the
# user manager that it starts for root holds up each machine's shutdown for ten seconds and more.
PACKAGES = (
    "ca-certificates",
    "cron",
    "dbus",
    "iproute2",
    "iputils-ping",
    "kmod",
    "less",
    "logrotate",
    "netbase",
    "openssh-server",
    "procps",
    "python3",
    "python3-apt",
    "sudo",
    "systemd",
    "systemd-sysv",
    "tzdata",
    "udev",
)

# Host keys and the machine's id belong to each machine, never to an image.
CUSTOMIZE = """\
set -eu
chroot "$1" systemctl enable systemd-networkd.service ssh.service
rm -f "$1"/etc/ssh/ssh_host_*
rm -f "$1"/etc/machine-id "$1"/var/lib/dbus/machine-id
echo LANG=C.UTF-8 > "$1"/etc/default/locale
"""


@dataclass(frozen=True)
class Recipe:
    """Everything that decides what an image holds."""

    release: str
    architecture: str
    packages: tuple[str, ...]
    sources: tuple[str, ...]  # apt source lines; empty: mmdebstrap's own
    apt_options: tuple[str, ...]
    # In place of CUSTOMIZE: the first is run, with the root as its argument; it may use the rest.
    scripts: tuple[Path, ...] = ()

    def digest(self) -> str:
        """Return a name for what this recipe makes: equal recipes, equal names."""
        parts = {
            "schema": SCHEMA,
            "customize": [each.read_text(encoding="utf-8") for each in self.scripts] or CUSTOMIZE,
            "release": self.release,
            "architecture": self.architecture,
            "packages": sorted({*PACKAGES, *self.packages}),
            "sources": self.sources,
            "apt_options": self.apt_options,
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]

    def command(self, target: Path, cache: Path) -> list[str]:
        """Return the mmdebstrap command that builds the image in `target`.

        Packages come from `cache` where it has them, by hard link: both lie on one file system.
        """
        archives = f'"$1"/{ARCHIVES}'
        fill = (
            f"mkdir -p {archives} && find {shlex.quote(str(cache))} -maxdepth 1 -name '*.deb' "
            f"-exec ln -t {archives} {{}} +"
        )
        return [
            *namespace.command(),
            "mmdebstrap",
            *("--mode=root", "--variant=apt", "--format=directory"),
            f"--architectures={self.architecture}",
            f"--include={','.join(sorted({*PACKAGES, *self.packages}))}",
            # Packages lie in the archives before and stay there after; the caller takes them.
            *("--skip=download/empty", "--skip=essential/unlink", "--skip=cleanup/apt/cache"),
            # The package lists stay: machines install without `apt update`.
            "--skip=cleanup/apt/lists",
            f"--setup-hook={fill}",
            f"--customize-hook={self._customize}",
            # A lab's file systems are made anew in seconds; syncing each file is wasted time.
            "--dpkgopt=force-unsafe-io",
            *(f"--aptopt={option}" for option in self.apt_options),
            self.release,
            str(target),
            *self.sources,
        ]

    @property
    def _customize(self) -> str:
        return f'sh {shlex.quote(str(self.scripts[0]))} "$1"' if self.scripts else CUSTOMIZE
