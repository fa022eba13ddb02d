"""What a failure means, where Ansible's or mitogen's words do not help, and what to do about it."""

import re
import shlex
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from hpcsite.deploy.events import HostEvent
from hpcsite.errors import InvalidSiteError
from hpcsite.site.connection import ssh_argv
from hpcsite.site.model import Site
from hpcsite.slurm.hardware import BREAKS

# Of mitogen first, then of ssh itself.
_KEY_REFUSED = re.compile(
    r"SSH password was requested|SSH authentication is incorrect|Permission denied \("
)
_HOST_KEY = re.compile(
    r"mismatching host key|unknown host key|Host key verification failed|IDENTIFICATION HAS CHANGED"
)
_TIMEOUT_S = 10


class Cause(NamedTuple):
    """What is wrong with a host, and what to do about it."""

    message: str
    hint: str


def explained(site: Site, event: HostEvent) -> HostEvent:
    """Put the cause of a failure into its event.

    Asks ssh for its configuration; connects to nothing.
    """
    if event.status == "failed" and BREAKS in event.message:
        return replace(event, hint=_contract_hint(site))
    if event.status != "unreachable":
        return event
    ssh = ssh_settings(site, event.host)
    address = ssh.get("hostname", "")
    if ssh and _KEY_REFUSED.search(event.message):
        message, hint = _key_refused(ssh, address)
    elif ssh and _HOST_KEY.search(event.message):
        message, hint = _host_key(ssh, address)
    else:
        # mitogen says "Connection timed out." and no more.
        prefix = f"{address}: " if address and address not in event.message else ""
        message, hint = f"{prefix}{event.message}", _lab_hint(site)
    return replace(event, message=message, hint=hint, address=address)


def ssh_settings(site: Site, name: str) -> dict[str, str]:
    """Ask for the settings with which ssh would connect, by `ssh -G`; empty if it does not tell.

    `key` is the key file that the inventory names, if it names one.
    """
    try:
        argv = ssh_argv(site, site.hosts[name])
        done = subprocess.run(
            [argv[0], "-G", *argv[1:]],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=True,
        )
    except (KeyError, InvalidSiteError, OSError, subprocess.SubprocessError):
        return {}
    settings: dict[str, str] = {}
    for line in done.stdout.splitlines():
        key, _, value = line.partition(" ")
        settings.setdefault(key, value)
    return settings | ({"key": argv[argv.index("-i") + 1]} if "-i" in argv else {})


def _key_refused(ssh: dict[str, str], address: str) -> Cause:
    user, key = ssh["user"], ssh.get("key", "")
    hint = (
        f"put its public half into {user}'s ~/.ssh/authorized_keys there, or name another key or "
        "user in the inventory: ansible_ssh_private_key_file, ansible_user; a key with a "
        "passphrase has to be in ssh-agent"
    )
    if not key:
        return Cause(
            f"none of your ssh keys was accepted for {user}@{address}",
            hint.replace("its public half", "the public half of one"),
        )
    if not Path(key).exists():
        hint = "ansible_ssh_private_key_file in the inventory names it"
        return Cause(f"the key {key} for {user}@{address} does not exist here", hint)
    return Cause(f"the key {key} was refused for {user}@{address}", hint)


def _host_key(ssh: dict[str, str], address: str) -> Cause:
    files = _files(ssh.get("userknownhostsfile", ""))
    port = ssh.get("port", "22")
    name = ssh.get("hostkeyalias", address)
    entry = name if port == "22" else f"[{name}]:{port}"
    scan = f"ssh-keyscan {address}" if port == "22" else f"ssh-keyscan -p {port} {address}"
    file = shlex.quote(files[0])
    compare = (
        f"compare what `{scan} | ssh-keygen -lf -` prints here with `ssh-keygen -lf "
        "/etc/ssh/ssh_host_ed25519_key.pub` on the host itself; if they agree: "
        f"{scan} >> {file}"
    )
    searched = [*files, *_files(ssh.get("globalknownhostsfile", ""))]
    holder = next((known for known in searched if _knows(known, entry)), "")
    if not holder:
        return Cause(f"the host key of {address} is unknown: it is not in {files[0]}", compare)
    return Cause(
        f"{address} shows another host key than {holder} has: it was installed anew, or another "
        "machine answers there",
        f"find out which; if it was installed anew: ssh-keygen -R {shlex.quote(entry)} "
        f"-f {shlex.quote(holder)}, then {compare}",
    )


def _files(value: str) -> list[str]:
    """Split a list of files as `ssh -G` prints it: by spaces, those in a path not quoted."""
    whole = Path(value).expanduser()
    return [str(whole)] if whole.exists() else [str(Path(f).expanduser()) for f in value.split()]


def _knows(file: str, entry: str) -> bool:
    with suppress(OSError, subprocess.TimeoutExpired):
        argv = ["ssh-keygen", "-F", entry, "-f", file]
        return not subprocess.run(
            argv, capture_output=True, timeout=_TIMEOUT_S, check=False
        ).returncode
    return False


def _contract_hint(site: Site) -> str:
    return (
        "correct the node; or, if the node is right, what is declared of it in "
        f"{shlex.quote(str(site.path / 'group_vars'))}, and then deploy without --limit"
    )


def _lab_hint(site: Site) -> str:
    if site.keys.lab is None:
        return ""
    inventory = shlex.quote(str(site.path))
    return (
        f"`hpcsite lab status {inventory}` says which virtual machines run; `hpcsite lab up "
        f"{inventory}` makes and starts them, `hpcsite lab start {inventory} NODES` starts some"
    )
