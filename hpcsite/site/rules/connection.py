"""How hosts are reached: by ssh, with a key, by variables that mean the same outside of Ansible."""

from collections.abc import Iterator

from hpcsite.errors import Problem
from hpcsite.site.connection import UnusableVariableError, argv_of
from hpcsite.site.draft import Draft
from hpcsite.site.names import fold

_SSH = ("ssh", "smart", "ansible.builtin.ssh")
PASSWORDS = ("ansible_password", "ansible_ssh_pass", "ansible_ssh_password")


def hosts_are_reached_by_ssh(draft: Draft) -> Iterator[Problem]:
    """Check that no host has another connection, also not the one that hpcsite runs on."""
    variable = "ansible_connection"
    hosts = draft.inventory.hosts
    other = [host for host in hosts if hosts[host].get(variable, "ssh") not in _SSH]
    for where, names in draft.by_line(other, variable):
        yield Problem(
            f"the connection of {fold(names)} is {hosts[names[0]][variable]}; "
            "hpcsite reaches every host by ssh",
            where,
            "remove it, and let this computer's ssh key log in there, also on itself",
            variable,
            code="HPC1310",
        )


def keys_log_in(draft: Draft) -> Iterator[Problem]:
    """Check that no login needs a password: nobody could type it during verification."""
    hosts = draft.inventory.hosts
    for variable in PASSWORDS:
        with_password = [host for host in hosts if variable in hosts[host]]
        for where, names in draft.by_line(with_password, variable):
            yield Problem(
                f"{variable}: hpcsite does not log in with a password ({fold(names)})",
                where,
                "log in with a key (ssh-copy-id), and remove the password",
                variable,
                code="HPC1311",
            )


def variables_are_usable(draft: Draft) -> Iterator[Problem]:
    """Check that the ssh command line of each host can be made."""
    for host, variables in draft.inventory.hosts.items():
        try:
            argv_of(draft.path, host, variables)
        except UnusableVariableError as error:
            path = (error.variable,)
            yield draft.problem(
                f"{error.variable} {error}", path, error.hint, host, code=error.code
            )


RULES = (hosts_are_reached_by_ssh, keys_log_in, variables_are_usable)
