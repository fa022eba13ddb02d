"""Lines of groups, hosts and variables in an inventory of Ansible's INI form."""

import re
import shlex

from hpcsite.errors import Location
from hpcsite.site.folder import Kind, SourceFile
from hpcsite.site.sources import Definition, Mention, Scope, Sources

_SECTION = re.compile(r"\[(?P<group>[^\]:]+)(?::(?P<part>\w+))?\]")


def add_ini(sources: Sources, file: SourceFile) -> None:
    """Add an INI inventory to the map. What is wrong with it, Ansible itself says."""
    group, part = "ungrouped", "hosts"
    text = file.path.read_text(encoding="utf-8", errors="replace")
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        where = Location(file.path, number)
        if not line or line.startswith(("#", ";")):
            continue
        if section := _SECTION.match(line):
            group, part = section["group"], section["part"] or "hosts"
            sources.groups.append(Mention(group, where))
        elif part == "vars":
            name = line.partition("=")[0].strip()
            sources.definitions.append(Definition(name, Scope(Kind.GROUP_VARS, group), where))
        elif part == "children":
            sources.groups.append(Mention(line.split()[0], where))
        else:
            _add_host(sources, line, where)


def _add_host(sources: Sources, line: str, where: Location) -> None:
    try:
        host, *pairs = shlex.split(line, comments=True)
    except ValueError:
        return
    sources.hosts.append(Mention(host, where))
    for pair in pairs:
        name = pair.partition("=")[0]
        sources.definitions.append(Definition(name, Scope(Kind.HOST_VARS, host), where))
