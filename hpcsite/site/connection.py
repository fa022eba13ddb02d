"""How a host is reached by ssh, as its inventory variables say it."""

import os
import pwd
import shlex
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined, TemplateError
from jinja2.sandbox import SandboxedEnvironment

from hpcsite.errors import CouldNotRunError, InvalidSiteError, Problem
from hpcsite.site.model import Host, Site

CONNECT_TIMEOUT_S = 10
# Only these are known outside of Ansible, so only these may stand in a connection variable.
TEMPLATE_VARIABLES = ("inventory_dir", "inventory_hostname")
_ARGUMENTS = ("ansible_ssh_args", "ansible_ssh_common_args", "ansible_ssh_extra_args")
# Names that Ansible takes for the same, the usual one first.
_PORT = ("ansible_port", "ansible_ssh_port")
_USER = ("ansible_user", "ansible_ssh_user")
_HOST = ("ansible_host", "ansible_ssh_host")
_KEY = ("ansible_ssh_private_key_file", "ansible_private_key_file")


class UnusableVariableError(ValueError):
    """A connection variable that hpcsite cannot use; `variable`, a reason, a hint and a code."""

    def __init__(self, variable: str, reason: str, hint: str, *, code: str) -> None:
        super().__init__(reason)
        self.variable = variable
        self.hint = hint
        self.code = code


def require_named_user() -> None:
    """Raise `CouldNotRunError` for a user without a name, as containers have them: ssh refuses."""
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        raise CouldNotRunError(
            f"the user id {os.geteuid()} has no name on this computer, and ssh needs one",
            hint="run hpcsite as a user who is in /etc/passwd or the directory service",
        ) from None


def require_key(site: Site) -> None:
    """Raise `CouldNotRunError` where no host's key file can be read and no agent holds keys.

    Where one host's can, that one is reached, and the others are reported as unreachable.
    """
    if os.environ.get("SSH_AUTH_SOCK"):
        return
    found = {_Rendered(site.path, h.name, h.vars).first(_KEY) for h in site.hosts.values()}
    keys = [Path(key).expanduser() for key in sorted(found)]
    if keys and "" not in found and not any(os.access(key, os.R_OK) for key in keys):
        raise CouldNotRunError(
            f"the ssh key {keys[0]} cannot be read, and no ssh agent is running",
            hint="run `hpcsite lab up`, which makes the key of a lab"
            if site.keys.lab
            else f"put the key there, or set {_KEY[0]} to the one that logs in",
        )


def ssh_argv(site: Site, host: Host) -> list[str]:
    """`ssh` with all its options and the destination; append the remote command.

    Never asks for anything (BatchMode), and gives up on a silent host after
    `CONNECT_TIMEOUT_S` seconds. Raises `InvalidSiteError` for a variable that cannot be used.
    """
    try:
        return argv_of(site.path, host.name, host.vars)
    except UnusableVariableError as error:
        message = f"{error.variable} of {host.name} {error}"
        problem = Problem(message, host.where, error.hint, error.variable, code=error.code)
        raise InvalidSiteError([problem]) from error


def argv_of(inventory: Path, host: str, variables: Mapping[str, Any]) -> list[str]:
    """Make the `ssh` command line of a host; raises `UnusableVariableError`."""
    rendered = _Rendered(inventory, host, variables)
    argv = ["ssh", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_TIMEOUT_S}"]
    if port := rendered.first(_PORT):
        argv += ["-p", port]
    if key := rendered.first(_KEY):
        argv += ["-i", str(Path(key).expanduser())]
    for variable in _ARGUMENTS:
        argv += rendered.words(variable)
    if user := rendered.first(_USER):
        argv += ["-l", user]
    return [*argv, "--", rendered.first(_HOST) or host]


class _Rendered:
    """A host's variables as text, with their templates filled in."""

    def __init__(self, inventory: Path, host: str, variables: Mapping[str, Any]) -> None:
        self._variables = variables
        self._known = {"inventory_dir": str(inventory.resolve()), "inventory_hostname": host}

    def first(self, names: Iterable[str]) -> str:
        """Value of the first of these variables that is set; empty if none is."""
        return next((text for name in names if (text := self._text(name))), "")

    def words(self, name: str) -> list[str]:
        """Split a variable's value as a shell would."""
        text = self._text(name)
        try:
            return shlex.split(text)
        except ValueError as error:
            raise UnusableVariableError(
                name,
                f"cannot be split into words: {error}",
                "close every quote in it, as in a shell",
                code="HPC1313",
            ) from error

    def _text(self, name: str) -> str:
        value = self._variables.get(name)
        text = "" if value is None else str(value)
        if "{" not in text:
            return text
        try:
            return _environment().from_string(text).render(self._known)
        except TemplateError as error:
            usable = " and ".join(f"{{{{ {known} }}}}" for known in TEMPLATE_VARIABLES)
            raise UnusableVariableError(
                name,
                f"cannot be rendered: {error}",
                f"hpcsite renders {usable} in it, and nothing else",
                code="HPC1312",
            ) from error


@cache
def _environment() -> Environment:
    return SandboxedEnvironment(undefined=StrictUndefined)
