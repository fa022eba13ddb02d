"""Names and values of variables: known names, literal values, one value for the whole site."""

from collections.abc import Iterator
from typing import Any

from hpcsite.errors import Problem
from hpcsite.site.draft import HOST_KEYS, PREFIX, Draft, key_text
from hpcsite.site.explain import FIELDS
from hpcsite.site.folder import Kind
from hpcsite.site.names import did_you_mean, nearest
from hpcsite.site.roles import Option, role_options, value_problems
from hpcsite.site.sources import ALL, Definition, KeyPath, Scope

OWN_PREFIX = "local_"
_TEMPLATE = ("{{", "{%", "{#")
_TAGS = {"__ansible_vault": "!vault", "__ansible_unsafe": "!unsafe"}
# Connection variables in common use; ansible_* is open to plugins, so others pass.
_ANSIBLE = frozenset(
    f"ansible_{name}"
    for name in (
        *("host", "port", "user", "password", "connection", "timeout", "shell_type", "remote_tmp"),
        *("become", "become_user", "become_method", "become_exe", "become_flags"),
        *("become_password", "become_pass", "python_interpreter", "pipelining", "scp_executable"),
        *("ssh_private_key_file", "ssh_common_args", "ssh_extra_args", "ssh_args", "ssh_user"),
        *("ssh_host", "ssh_port", "ssh_pass", "ssh_password", "ssh_executable", "ssh_pipelining"),
        *("ssh_transfer_method", "ssh_retries", "sftp_extra_args", "scp_extra_args", "ssh_timeout"),
        *("host_key_checking", "ssh_host_key_checking", "private_key_file", "ssh_control_path"),
    )
)
_CLOSE = 0.9
_FOR_ALL = "a site_* key holds for the whole site: set it once, in group_vars/all"


def check_variables(draft: Draft) -> Iterator[Problem]:
    """Find every mistake in names and values of variables, by themselves and per role."""
    options = role_options()
    yield from _names_are_known(draft, options)
    yield from _set_once(draft)
    yield from _one_value_for_the_site(draft)
    yield from _site_keys_are_literal(draft)
    yield from _numbers_are_meant(draft)
    yield from _role_values(draft, options)


def _names_are_known(draft: Draft, options: dict[str, Option]) -> Iterator[Problem]:
    site_keys = {PREFIX + name for name in FIELDS} | set(HOST_KEYS)
    known = site_keys | set(options)
    seen = set()
    for definition in draft.sources.definitions:
        seen.add(definition.name)
        if hint := _unknown(definition.name, known):
            message = f"unknown key {definition.name}"
            yield Problem(message, definition.where, hint, definition.name, code="HPC1030")
    for host, variables in draft.inventory.hosts.items():
        for name in variables:
            if name not in seen and (hint := _unknown(name, known)):
                seen.add(name)
                yield draft.problem(f"unknown key {name}", (name,), hint, host, code="HPC1030")


def _unknown(name: str, known: set[str]) -> str | None:
    """Write the hint for an unknown name; None for one that is known."""
    if name in known or name.startswith(OWN_PREFIX) or name in _ANSIBLE:
        return None
    if name.startswith("ansible_"):
        meant = nearest(name, _ANSIBLE, cutoff=_CLOSE)
        return f"did you mean {meant}?" if meant else None
    return did_you_mean(
        name,
        known,
        f"docs/inventory.md lists every key; names of your own begin with {OWN_PREFIX}",
    )


def _set_once(draft: Draft) -> Iterator[Problem]:
    """Ansible lets the last one win when a variable is set twice for one group or host."""
    first: dict[tuple[str, Scope], str] = {}
    for definition in draft.sources.definitions:
        key = (definition.name, definition.scope)
        if key in first:
            yield Problem(
                f"{definition.name} is set for {definition.scope} here again",
                definition.where,
                f"keep one of the two; the other stands at {first[key]}",
                definition.name,
                code="HPC1031",
            )
        first.setdefault(key, str(definition.where))


def _one_value_for_the_site(draft: Draft) -> Iterator[Problem]:
    """Find site keys that some hosts have otherwise: they would give the roles several truths.

    One that is set for a part of the hosts is such a key even where another place overrules it. A
    name that nobody knows is its own mistake.
    """
    for name in FIELDS:
        key = PREFIX + name
        narrow = [d for d in draft.sources.of(key) if not _is_for_all(draft, d)]
        for definition in narrow:
            yield Problem(
                f"{key} is set for {definition.scope} alone",
                definition.where,
                _FOR_ALL,
                key,
                code="HPC1032",
            )
        if not narrow and key in draft.raw and _differs(draft, key):
            yield Problem(
                f"{key} is not the same for all hosts",
                draft.where((key,)),
                _FOR_ALL,
                key,
                code="HPC1032",
            )


def _is_for_all(draft: Draft, definition: Definition) -> bool:
    scope = definition.scope
    if scope == ALL:
        return True
    members = draft.inventory.groups.get(scope.name, frozenset())
    return scope.kind is Kind.GROUP_VARS and members == frozenset(draft.inventory.hosts)


def _differs(draft: Draft, key: str) -> bool:
    value = draft.raw[key]
    found = (variables.get(key) for variables in draft.inventory.hosts.values())
    # Mostly it is one object: to compare large ones takes long.
    return not all(other is value or other == value for other in found)


def _site_keys_are_literal(draft: Draft) -> Iterator[Problem]:
    for name, value in draft.raw.items():
        for path, what, code in _not_literal(value, (name,)):
            yield _literal_problem(draft, path, what, None, code)
    for host, variables in draft.inventory.hosts.items():
        for name in HOST_KEYS:
            for path, what, code in _not_literal(variables.get(name), (name,)):
                yield _literal_problem(draft, path, what, host, code)


def _literal_problem(
    draft: Draft, path: KeyPath, what: str, host: str | None, code: str
) -> Problem:
    return draft.problem(
        f"{key_text(path)} {what}; a site key must be literal",
        path,
        "write the value itself: hpcsite reads site_* keys without running Ansible on a host; "
        f"a variable of your own (`{OWN_PREFIX}…`) or of a role may hold templates",
        host,
        code=code,
    )


def _not_literal(value: object, path: KeyPath) -> Iterator[tuple[KeyPath, str, str]]:
    """Find all templates and encrypted values below a value: where, what, and its code."""
    if isinstance(value, str) and any(mark in value for mark in _TEMPLATE):
        yield path, "holds a template", "HPC1033"
    elif isinstance(value, dict):
        if tag := next((tag for mark, tag in _TAGS.items() if mark in value), None):
            yield path, f"is tagged {tag}", "HPC1034"
            return
        for key, child in value.items():
            yield from _not_literal(child, (*path, str(key)))
    elif isinstance(value, list):
        for number, child in enumerate(value):
            yield from _not_literal(child, (*path, number))


def _numbers_are_meant(draft: Draft) -> Iterator[Problem]:
    """YAML 1.1 reads 010 as 8; a uid written with a leading zero is not the one meant."""
    for name, value in draft.raw.items():
        definition = draft.definition(name)
        if definition is None:
            continue
        for path, number in _integers(value, (name,)):
            written = definition.scalar(path[1:]) or ""
            if len(written) > 1 and written.startswith("0") and written.isdigit():
                yield draft.problem(
                    f"YAML reads {written} as the octal number {number}",
                    path,
                    f"write {int(written)}",
                    code="HPC1035",
                )


def _integers(value: object, path: KeyPath) -> Iterator[tuple[KeyPath, int]]:
    if isinstance(value, int) and not isinstance(value, bool):
        yield path, value
    elif isinstance(value, dict):
        for key, child in value.items():
            yield from _integers(child, (*path, str(key)))
    elif isinstance(value, list):
        for number, child in enumerate(value):
            yield from _integers(child, (*path, number))


def _role_values(draft: Draft, options: dict[str, Option]) -> Iterator[Problem]:
    """Hold what is set for a role against the role's own specification, each value once."""
    done: set[tuple[str, str]] = set()
    for host, variables in draft.inventory.hosts.items():
        for name, value in _of_roles(variables, options):
            where = draft.where((name,), host)
            if (name, str(where)) in done:
                continue
            done.add((name, str(where)))
            for path, message, hint, code in value_problems(options[name], value, (name,)):
                yield draft.problem(message, path, hint, host, code=code)


def _of_roles(variables: dict[str, Any], options: dict[str, Option]) -> Iterator[tuple[str, Any]]:
    for name, value in variables.items():
        if name in options and not name.startswith(PREFIX):
            yield name, value
