"""Secrets: none stands in plain text. No message holds a value."""

import re
from collections.abc import Iterator

import yaml

from hpcsite.errors import Location, Problem
from hpcsite.site.draft import Draft, key_text
from hpcsite.site.folder import Kind
from hpcsite.site.roles import Option, role_options
from hpcsite.site.rules.connection import PASSWORDS
from hpcsite.site.sources import Definition, KeyPath, matches
from hpcsite.site.yamlfile import items, line_of

_NAME = re.compile(
    r"(password|passwd|passphrase)$"
    r"|(^|_)(pass|secret|token)$"
    r"|(^|_)(private|secret|api|access|encryption|munge|jwt|auth)_key$"
    r"|^JobCompPass$",
    re.IGNORECASE,
)
# Names of keys are those of their files, too.
_KEY_NAME = re.compile(r"_key$", re.IGNORECASE)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----")
_WEB_PASSWORD = re.compile(r"\w://[^/\s:@]+:[^/\s@]+@")
_TEMPLATE = ("{{", "{%")
_HIDDEN_TAGS = ("!vault", "!vault-encrypted")
# Values that are no text: on, off, nothing.
_NO_TEXT = ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:null")


def secrets_are_hidden(draft: Draft) -> Iterator[Problem]:
    """Check each variable, and all that is nested in it, by its name and by what it holds."""
    hidden = set(_no_log(role_options()))
    for definition in draft.sources.definitions:
        # A password to log in with is refused in any form.
        if definition.name in PASSWORDS:
            continue
        for path, text, line in _texts(draft, definition):
            if found := _found(path, text, hidden):
                message, hint, code = found
                where = Location(definition.where.path, line)
                yield Problem(message, where, hint, key_text(path), code=code)


def _found(path: KeyPath, text: str, hidden: set[str]) -> tuple[str, str, str] | None:
    """Say of one text what is secret in it: message, hint, code."""
    told = key_text(path)
    # That a user's key is a public one is a rule about users.
    if _PRIVATE_KEY.search(text) and "ssh_keys" not in path:
        return (
            f"{told} is a private key",
            "move it to a file below secrets/, or encrypt it with ansible-vault; then renew it",
            "HPC1811",
        )
    if not text.strip() or any(mark in text for mark in _TEMPLATE):
        return None
    name = next(str(step) for step in reversed(path) if isinstance(step, str))
    is_file = _KEY_NAME.search(name) and text.startswith(("/", "~"))
    if (_NAME.search(name) and not is_file) or name in hidden:
        return (
            f"{told} is a secret in plain text",
            "encrypt it with ansible-vault, or read it from secrets/ by a lookup; then change it",
            "HPC1810",
        )
    if _WEB_PASSWORD.search(text):
        return (
            f"{told} is a web address with a password in it",
            "leave the password out, or encrypt the value with ansible-vault; then change it",
            "HPC1812",
        )
    return None


def _texts(draft: Draft, definition: Definition) -> Iterator[tuple[KeyPath, str, int]]:
    """Yield each literal text of a definition with its path and line."""
    if definition.node is not None:
        yield from _below(definition.node, (definition.name,), definition.where.line)
    elif not draft.sources.encrypted:
        # INI files have no nodes, but what Ansible read of them; an encrypted file may be why.
        value = _value(draft, definition)
        if isinstance(value, str | int) and not isinstance(value, bool):
            yield (definition.name,), str(value), definition.where.line


def _below(node: yaml.Node, path: KeyPath, line: int) -> Iterator[tuple[KeyPath, str, int]]:
    if isinstance(node, yaml.MappingNode):
        for name, key, value in items(node):
            yield from _below(value, (*path, name), line_of(key))
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield from _below(value, (*path, number), line_of(value))
    elif isinstance(node, yaml.ScalarNode) and node.tag not in (*_HIDDEN_TAGS, *_NO_TEXT):
        yield path, str(node.value), line


def _value(draft: Draft, definition: Definition) -> object:
    scope = definition.scope
    if scope.kind is Kind.HOST_VARS:
        # Most stand by their names; only a pattern has to be tried on each host.
        known = draft.inventory.hosts
        hosts = (
            [scope.name] if scope.name in known else [h for h in known if matches(scope.name, h)]
        )
    elif scope.name == "all":
        hosts = list(draft.inventory.hosts)
    else:
        hosts = sorted(draft.inventory.groups.get(scope.name, ()))
    return draft.inventory.hosts[hosts[0]].get(definition.name) if hosts else None


def _no_log(options: dict[str, Option]) -> Iterator[str]:
    """Names of options that Ansible hides, also nested ones."""
    for name, option in options.items():
        if option.get("no_log"):
            yield name
        yield from _no_log(option.get("options") or {})


RULES = (secrets_are_hidden,)
