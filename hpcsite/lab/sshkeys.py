"""The lab's ssh: a key of its own, and host keys that are known before a machine boots."""

import os
from collections.abc import Iterable
from pathlib import Path

from hpcsite.image import files, tools
from hpcsite.lab.spec import Endpoint

HOST_KEY = "ssh_host_ed25519_key"


def ensure_login_key(lab_files: Path, lab: str) -> str:
    """Make the key that opens the lab's machines, if there is none; returns its public half."""
    folder = lab_files / "ssh"
    folder.mkdir(parents=True, exist_ok=True)
    lab_files.chmod(0o700)
    folder.chmod(0o700)
    return _ensure_key(login_key(lab_files), f"hpcsite lab {lab}")


def give_to_owner(lab_files: Path) -> None:
    """Give the key and known hosts to the inventory folder's owner.

    Who wrote the inventory may deploy to its lab without being root: `sudo hpcsite lab up` then
    leaves nothing of root's in that folder.
    """
    if os.geteuid() != 0:
        return
    owner = lab_files.parent.stat()
    for path in (lab_files, *lab_files.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def login_key(lab_files: Path) -> Path:
    """Return the path of the lab's private key."""
    return lab_files / "ssh" / "id_ed25519"


def known_hosts(lab_files: Path) -> Path:
    """Return the path of the lab's known_hosts file."""
    return lab_files / "ssh" / "known_hosts"


def ensure_host_key(host_keys: Path, node: str) -> str:
    """Make a machine's host key, if there is none; returns its public half."""
    folder = host_keys / node
    folder.mkdir(parents=True, exist_ok=True)
    return _ensure_key(folder / HOST_KEY, f"root@{node}")


def write_known_hosts(lab_files: Path, entries: Iterable[tuple[str, str, str]]) -> None:
    """Write known_hosts from (name, known host, public host key), whole and at once."""
    lines = []
    for name, known_host, public_key in entries:
        kind, blob = public_key.split()[:2]
        lines.append(f"{known_host},{name} {kind} {blob}\n")
    files.write_atomically(known_hosts(lab_files), "".join(lines), mode=0o600)


def ssh_command(lab_files: Path, endpoint: Endpoint, *, seconds: int) -> list[str]:
    """Return the command that logs in as root, whatever the user's own ssh configuration says."""
    options = {
        "BatchMode": "yes",
        "ConnectTimeout": str(seconds),
        "IdentitiesOnly": "yes",
        "StrictHostKeyChecking": "yes",
        # Quoted: the option takes several files, separated by spaces.
        "UserKnownHostsFile": f'"{known_hosts(lab_files)}"',
        "GlobalKnownHostsFile": "/dev/null",
        "LogLevel": "ERROR",
    }
    return [
        *("ssh", "-F", "none", "-i", str(login_key(lab_files))),
        *(part for key, value in options.items() for part in ("-o", f"{key}={value}")),
        *("-p", str(endpoint.port), f"root@{endpoint.address}"),
    ]


def _ensure_key(path: Path, comment: str) -> str:
    public = path.with_name(f"{path.name}.pub")
    if not (path.exists() and public.exists()):
        # A killed ssh-keygen may leave one half, and it would ask before replacing it.
        path.unlink(missing_ok=True)
        public.unlink(missing_ok=True)
        tools.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)])
    return public.read_text(encoding="utf-8").strip()
