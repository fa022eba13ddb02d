"""What of the host's own apt configuration its lab needs: proxy, mirrors, trust in dates."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from hpcsite.image import tools
from hpcsite.image.recipe import KEYRING

_LOOPBACK = re.compile(r"^(localhost|127\.[0-9.]+|::1)$")
# A host whose mirror is frozen at a date says so with these; its lab uses the same mirror.
_KEPT = ("Acquire::Check-Valid-Until", "Acquire::Check-Date")


@dataclass(frozen=True)
class HostApt:
    """The host's apt settings that matter to a lab; empty where the host has none."""

    proxy: str = ""
    options: tuple[str, ...] = ()
    mirror: str = ""
    security_mirror: str = ""

    def sources(self, release: str) -> tuple[str, ...]:
        """Return source lines for a release; none where mmdebstrap's own will do."""
        if not self.mirror:
            return ()
        option = f"[signed-by={KEYRING}]"
        lines = [
            f"deb {option} {self.mirror} {release} main",
            f"deb {option} {self.mirror} {release}-updates main",
        ]
        if self.security_mirror:
            lines.append(f"deb {option} {self.security_mirror} {release}-security main")
        return tuple(lines)

    def machine_proxy(self, gateway: str) -> str:
        """Return the proxy as a machine reaches it: the host's loopback is not the machine's."""
        parts = urlsplit(self.proxy)
        if not _LOOPBACK.match(parts.hostname or ""):
            return self.proxy
        port = f":{parts.port}" if parts.port else ""
        return urlunsplit(parts._replace(netloc=f"{gateway}{port}"))


def read_host_apt() -> HostApt:
    """Ask the host's apt; a host without apt has no settings."""
    try:
        config = tools.attempt(["apt-config", "dump"]).stdout
        targets = tools.attempt(
            ["apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)"]
        ).stdout
    except (FileNotFoundError, KeyError):
        return HostApt()
    return parse_host_apt(config, targets)


def parse_host_apt(config: str, targets: str) -> HostApt:
    """Read `apt-config dump` and `apt-get indextargets`."""
    values = dict(re.findall(r'^(\S+) "(.*)";$', config, re.MULTILINE))
    options = tuple(f'{key} "{values[key]}"' for key in _KEPT if values.get(key))
    mirrors: dict[str, str] = {}
    for line in targets.splitlines():
        origin, _, rest = line.partition("|")
        label, _, uri = rest.partition("|")
        if origin == "Debian" and uri.startswith(("http://", "https://")):
            mirrors.setdefault(label, uri)
    return HostApt(
        proxy=values.get("Acquire::http::Proxy", ""),
        options=options,
        mirror=mirrors.get("Debian", ""),
        security_mirror=mirrors.get("Debian-Security", ""),
    )
