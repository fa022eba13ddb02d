"""Runs the roles' install stage by Ansible inside of roots, at native speed.

Ansible reaches a root by ssh like any other host: the ProxyCommand of the connection enters
namespaces, changes into the root and serves that one connection there by `sshd -i`. The
inventory is the site's own; only the connection is replaced, by variables of the command line,
which stand above all others.
"""

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

from hpcsite.deploy.events import Event, Output
from hpcsite.deploy.failures import group_failures
from hpcsite.deploy.runner import Playbook
from hpcsite.deploy.tally import Tally
from hpcsite.errors import CouldNotRunError
from hpcsite.image import namespace, tools
from hpcsite.image.kinds import STEPS
from hpcsite.paths import content_dir
from hpcsite.site.model import Site

PLAYBOOK = "playbooks/image.yml"
_ALIAS = "image"
_CONNECT_SECONDS = 120


def install(site: Site, roots: Mapping[str, Path], work: Path, *, proxy: str, log: Path) -> None:
    """Install in each root what the roles install on the host of that name.

    `work` is a folder for keys and the like, which the caller removes; `log` takes all output.

    Raises:
        CouldNotRunError: the install stage failed; says in which task and why.
    """
    _make_keys(work)
    for host, root in roots.items():
        _write_entrance(work / f"enter-{host}", root, work, proxy)
    tally = Tally()
    with log.open("w", encoding="utf-8", buffering=1) as stream:
        code = Playbook(
            playbook=content_dir() / PLAYBOOK,
            inventory=site.path,
            work=work / "runner",
            lock=work / "ansible.lock",
            strategy="linear",
            on_event=_listener(tally, stream.write),
            limit=",".join(roots),
            variables=_connection(work),
        ).run()
    if code == 0:
        return
    failures = group_failures(tally)
    said = "\n".join(f"{each.nodes}: {each.task}: {each.message}" for each in failures)
    raise CouldNotRunError(
        f"the roles' packages could not be installed:\n{said or chr(10).join(tally.last_lines)}",
        hint=f"everything that Ansible printed: {log}",
    )


def _listener(tally: Tally, write: Callable[[str], object]) -> Callable[[Event], None]:
    def take(event: Event) -> None:
        tally.add(event)
        if isinstance(event, Output):
            write(event.text.rstrip("\n") + "\n")

    return take


def _make_keys(work: Path) -> None:
    for name in ("host", "login"):
        key = work / name
        tools.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(key)])
    public = (work / "host.pub").read_text(encoding="utf-8")
    (work / "known_hosts").write_text(f"{_ALIAS} {public}", encoding="utf-8")


def _write_entrance(path: Path, root: Path, work: Path, proxy: str) -> None:
    argv = [*namespace.command(), "sh", str(STEPS / "sshd.sh"), str(root), str(work), proxy]
    path.write_text(f"#!/bin/sh\nexec {shlex.join(argv)}\n", encoding="utf-8")
    path.chmod(0o700)


def _connection(work: Path) -> dict[str, str]:
    """Return the variables that lead Ansible into a root instead of to a host."""
    options = {
        "ProxyCommand": f'"{work}/enter-{{{{ inventory_hostname }}}}"',
        "HostKeyAlias": _ALIAS,
        "UserKnownHostsFile": f'"{work}/known_hosts"',
        "GlobalKnownHostsFile": "/dev/null",
        "IdentitiesOnly": "yes",
        "IdentityFile": f'"{work}/login"',
        "PreferredAuthentications": "publickey",
    }
    return {
        "ansible_connection": "ssh",
        # A name of its own for each root and build: ssh's shared connections go by it.
        "ansible_host": f"{{{{ inventory_hostname }}}}.{work.name.strip('.')}",
        "ansible_port": "22",
        "ansible_user": "root",
        "ansible_password": "",
        "ansible_become": "false",
        "ansible_python_interpreter": "/usr/bin/python3",
        "ansible_ssh_private_key_file": f"{work}/login",
        "ansible_ssh_common_args": "-F none "
        + " ".join(f"-o {shlex.quote(f'{name}={value}')}" for name, value in options.items()),
        # An inventory's own may lead through a jump host, or slow Ansible down.
        "ansible_ssh_args": "-o ControlMaster=auto -o ControlPersist=60s",
        "ansible_ssh_extra_args": "",
        "ansible_ssh_timeout": str(_CONNECT_SECONDS),
        "ansible_pipelining": "true",
        "ansible_ssh_executable": "ssh",
    }
