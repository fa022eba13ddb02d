"""How a host is reached by ssh, as its inventory variables say it."""

import shlex
from typing import Any

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import SandboxedEnvironment

from hpcsite.errors import InvalidSiteError, Problem
from hpcsite.site.model import Host, Site

CONNECT_TIMEOUT_S = 10
# Only these are known outside of Ansible, so only these may stand in a connection variable.
TEMPLATE_VARIABLES = ("inventory_dir", "inventory_hostname")


def ssh_argv(site: Site, host: Host) -> list[str]:
    """`ssh` with all its options and the destination; append the remote command.

    Never asks for anything (BatchMode), and gives up on a silent host after
    `CONNECT_TIMEOUT_S` seconds. Raises `InvalidSiteError` for a variable that cannot be used.
    """
    argv = ["ssh", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_TIMEOUT_S}"]
    if port := _rendered(site, host, "ansible_port"):
        argv += ["-p", port]
    if key := _rendered(site, host, "ansible_ssh_private_key_file"):
        argv += ["-i", key]
    for variable in ("ansible_ssh_common_args", "ansible_ssh_extra_args"):
        argv += _words(host, variable, _rendered(site, host, variable))
    if user := _rendered(site, host, "ansible_user"):
        argv += ["-l", user]
    return [*argv, "--", _rendered(site, host, "ansible_host") or host.name]


def _rendered(site: Site, host: Host, variable: str) -> str:
    """Value of a connection variable as text; empty where it is not set."""
    value: Any = host.vars.get(variable, "")
    text = str(value)
    if "{" not in text:
        return text
    known = {"inventory_dir": str(site.path), "inventory_hostname": host.name}
    try:
        return SandboxedEnvironment(undefined=StrictUndefined).from_string(text).render(known)
    except TemplateError as error:
        raise InvalidSiteError([_not_renderable(host, variable, error)]) from error


def _not_renderable(host: Host, variable: str, error: TemplateError) -> Problem:
    usable = " and ".join(f"{{{{ {name} }}}}" for name in TEMPLATE_VARIABLES)
    return Problem(
        f"{variable} of {host.name} cannot be rendered: {error}",
        host.where,
        hint=f"hpcsite renders {usable} in it, and nothing else",
        key=variable,
    )


def _words(host: Host, variable: str, text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InvalidSiteError(
            [
                Problem(
                    f"{variable} of {host.name} cannot be split into words: {error}",
                    host.where,
                    hint="close every quote in it, as in a shell",
                    key=variable,
                )
            ]
        ) from error
