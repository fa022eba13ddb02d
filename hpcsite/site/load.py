"""An inventory folder → `Site`. Every command begins here."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from hpcsite.errors import InvalidSiteError, Location, Problem
from hpcsite.site.acknowledged import acknowledgements_can_be, marked, unused
from hpcsite.site.catalogue import read_catalogue
from hpcsite.site.codes import CODES
from hpcsite.site.draft import HOST_KEYS, PREFIX, Draft
from hpcsite.site.explain import check_host_keys, check_keys
from hpcsite.site.folder import Kind, SourceFile, scan_folder
from hpcsite.site.hardware import with_profiles
from hpcsite.site.ini import add_ini
from hpcsite.site.inventory import read_inventory
from hpcsite.site.model import Host, Site, SiteKeys
from hpcsite.site.rules import RULES
from hpcsite.site.sources import Sources
from hpcsite.site.variables import check_variables
from hpcsite.site.yamlfile import read_yaml

_SECRET_WORDS = ("password", "pass", "secret", "token")


def load_site(path: Path) -> Site:
    """Read and check an inventory folder.

    Raises `InvalidSiteError` with every mistake found, sorted by where it stands;
    `CouldNotRunError` when `ansible-inventory` cannot be used. Mistakes in how files are written
    come first: while there are any, Ansible cannot say what the others mean. Warnings are never
    raised; they are in the site, and beside the mistakes in the error. What node groups leave to
    their hardware profiles is filled in.
    """
    sources = read_sources(path)
    if unreadable := [problem for problem in sources.problems if _is_error(problem)]:
        raise InvalidSiteError(_sorted(unreadable))
    catalogue, hardware_problems = read_catalogue(path)
    sources.problems += hardware_problems
    inventory = read_inventory(path, sources)
    draft = Draft(path, inventory, sources, SiteKeys(name="unnamed"), catalogue=catalogue)
    if not draft.inventory.hosts:
        raise InvalidSiteError([_no_hosts(path)])
    errors, warnings = _checked(draft)
    if errors:
        raise InvalidSiteError(_sorted(errors), _sorted(warnings))
    # Which warnings there are is known only now: a mistake may keep a rule from finding its own.
    warnings += unused(draft, warnings)
    return Site(
        path=path.resolve(),
        keys=draft.keys,
        hosts=_hosts(draft),
        warnings=tuple(_sorted(warnings)),
        catalogue=catalogue,
    )


def _checked(draft: Draft) -> tuple[list[Problem], list[Problem]]:
    """Find all mistakes, and all warnings with the reasons for which the site accepts them."""
    problems = [*draft.sources.problems, *check_variables(draft)]
    for check in (check_keys, _fill_in, check_host_keys, acknowledgements_can_be, *RULES):
        # What is wrong in itself needs no second complaint about its meaning.
        settled = {(p.key, p.host) for p in problems if p.key.startswith(PREFIX) and _is_error(p)}
        problems += [p for p in check(draft) if (p.key, p.host) not in settled]
    warnings = [problem for problem in problems if not _is_error(problem)]
    return [p for p in problems if _is_error(p)], marked(draft, warnings)


def _fill_in(draft: Draft) -> list[Problem]:
    """Give the node groups what their hardware profiles say; names that are wrong have a rule."""
    draft.declared = draft.keys.node_groups
    groups = with_profiles(draft.declared, draft.catalogue)
    draft.keys = draft.keys.model_copy(update={"node_groups": groups})
    return []


def _is_error(problem: Problem) -> bool:
    return not CODES[problem.code].warning


def read_sources(path: Path) -> Sources:
    """Map every name in the folder to its line; what cannot be read is in its problems."""
    folder = scan_folder(path)
    sources = Sources(problems=folder.problems)
    for file in folder.files:
        _add(sources, file)
    if sources.encrypted and "ANSIBLE_VAULT_PASSWORD_FILE" not in os.environ:
        sources.problems.extend(
            Problem(
                "this file is encrypted, and there is no vault password",
                Location(encrypted),
                "set ANSIBLE_VAULT_PASSWORD_FILE to the file that holds it",
                code="HPC1024",
            )
            for encrypted in sources.encrypted
        )
    return sources


def _add(sources: Sources, file: SourceFile) -> None:
    inventory = file.kind is Kind.INVENTORY
    if inventory and file.path.suffix not in (".yml", ".yaml", ".json"):
        if os.access(file.path, os.X_OK):
            sources.opaque.append(file.path)
        elif (root := _yaml_without_suffix(file.path)) is not None:
            sources.add_inventory(file.path, root)
        else:
            add_ini(sources, file)
        return
    content = read_yaml(file.path)
    sources.problems.extend(content.problems)
    if content.encrypted:
        sources.encrypted.append(file.path)
    elif not content.problems and inventory:
        sources.add_inventory(file.path, content.root)
    elif not content.problems:
        sources.add_vars(file, content.root)


def _yaml_without_suffix(path: Path) -> yaml.Node | None:
    """Read a file without a suffix as YAML, as Ansible first does; None if it is something else."""
    if path.suffix:
        return None
    content = read_yaml(path)
    readable = not content.problems and not content.encrypted
    return content.root if readable and isinstance(content.root, yaml.MappingNode) else None


def _no_hosts(path: Path) -> Problem:
    return Problem(
        "the inventory has no hosts",
        Location(path),
        "docs/inventory.md has an example hosts.yml",
        code="HPC1103",
    )


def _sorted(problems: Iterable[Problem]) -> list[Problem]:
    """Each problem once, in the order of files and lines."""
    distinct = dict.fromkeys(problems)
    return sorted(distinct, key=lambda p: (p.where or Location(Path()), p.message))


def _hosts(draft: Draft) -> dict[str, Host]:
    return {
        name: Host(
            name=name,
            groups=draft.inventory.groups_of(name),
            address=str(variables.get("site_address") or variables.get("ansible_host")),
            vars=_host_variables(variables, draft),
            where=draft.sources.where_host(name),
        )
        for name, variables in draft.inventory.hosts.items()
    }


def _host_variables(variables: dict[str, Any], draft: Draft) -> dict[str, Any]:
    """Leave out the site's keys, passwords, and whatever came out of an encrypted file.

    The last has no definition in the map of sources.
    """
    encrypted = bool(draft.sources.encrypted)
    return {
        name: value
        for name, value in variables.items()
        if (name in HOST_KEYS or not name.startswith(PREFIX))
        and not name.endswith(_SECRET_WORDS)
        and (not encrypted or draft.sources.of(name))
    }
