"""Where everything in an inventory folder stands: each variable, group and host, by file and line.

Meaning is Ansible's affair (`hpcsite.site.inventory`); this is only a map from names to lines.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

import yaml

from hpcsite.errors import Location, Problem
from hpcsite.site.folder import Kind, SourceFile
from hpcsite.site.yamlfile import items, line_of

KeyPath = tuple[str | int, ...]
_Items = dict[str, tuple[int, yaml.Node]]
_RANGE = re.compile(r"\[(\w+):(\w+)(?::\d+)?\]")

_SLURM_RANGE = re.compile(r"\[(\w+)-(\w+)\]")


@dataclass(frozen=True)
class Scope:
    """What a variable is set for: the group or the host (or host pattern) `name`."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"the {'host' if self.kind is Kind.HOST_VARS else 'group'} {self.name}"


ALL = Scope(Kind.GROUP_VARS, "all")


@dataclass(frozen=True)
class Definition:
    """One place where a variable is set. `node` is its value, None outside of YAML."""

    name: str
    scope: Scope
    where: Location
    node: yaml.Node | None = None
    # What mappings hold, by name: a mapping of thousands is looked into thousands of times.
    _inside: dict[int, _Items] = field(default_factory=dict, compare=False, repr=False)

    def locate(self, path: KeyPath) -> Location:
        """Where the element at `path` of the value stands, or as much of the path as exists."""
        node, line = self.node, self.where.line
        for step in path:
            found = self._step(node, step)
            if found is None:
                break
            line, node = found
        return Location(self.where.path, line)

    def scalar(self, path: KeyPath) -> str | None:
        """Text of the scalar at `path` as it stands in the file, unquoted ones only."""
        node = self.node
        for step in path:
            found = self._step(node, step)
            if found is None:
                return None
            _, node = found
        plain = isinstance(node, yaml.ScalarNode) and not node.style
        return str(node.value) if node is not None and plain else None

    def _step(self, node: yaml.Node | None, step: str | int) -> tuple[int, yaml.Node] | None:
        """Line and node of one element of a mapping or list."""
        if isinstance(node, yaml.MappingNode):
            if id(node) not in self._inside:
                inside = {text: (line_of(key), value) for text, key, value in items(node)}
                self._inside[id(node)] = inside
            return self._inside[id(node)].get(str(step))
        if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            return line_of(node.value[step]), node.value[step]
        return None


# A definition with its place among all.
_Numbered = tuple[int, Definition]


@dataclass(frozen=True)
class Mention:
    """A place where a group or host is named; `declares` is False for its variables file."""

    name: str
    where: Location
    declares: bool = True


@dataclass
class Sources:
    """The map of one inventory folder."""

    definitions: list[Definition] = field(default_factory=list)
    groups: list[Mention] = field(default_factory=list)
    hosts: list[Mention] = field(default_factory=list)
    encrypted: list[Path] = field(default_factory=list)
    # Inventory files that are run to know what they hold: scripts, and plugins' configurations.
    opaque: list[Path] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def of(self, name: str) -> list[Definition]:
        """Every definition of a variable."""
        return self._by_name.get(name, [])

    def for_groups(self, name: str) -> list[Definition]:
        """Every definition of a variable for a group."""
        return self._for_groups.get(name, [])

    def for_host(self, name: str, host: str) -> Definition | None:
        """Find the last definition of a variable for a host, by its name or by a pattern."""
        own, patterns = self._for_hosts.get(name, ({}, []))
        found = [own[host]] if host in own else []
        found += [entry for entry in patterns if matches(entry[1].scope.name, host)]
        return max(found, key=lambda entry: entry[0])[1] if found else None

    def where_group(self, name: str) -> Location | None:
        """Where a group is first named."""
        return self._group_lines.get(name)

    def where_host(self, name: str) -> Location | None:
        """Where a host is first named, also by a pattern such as gpu[01:08]."""
        return self._host_lines.get(name) or next(
            (m.where for m in self._host_patterns if matches(m.name, name)), None
        )

    # The map is complete before it is read: each index is made once.
    @cached_property
    def _by_name(self) -> dict[str, list[Definition]]:
        index: dict[str, list[Definition]] = {}
        for definition in self.definitions:
            index.setdefault(definition.name, []).append(definition)
        return index

    @cached_property
    def _for_groups(self) -> dict[str, list[Definition]]:
        index: dict[str, list[Definition]] = {}
        for definition in self.definitions:
            if definition.scope.kind is Kind.GROUP_VARS:
                index.setdefault(definition.name, []).append(definition)
        return index

    @cached_property
    def _for_hosts(self) -> dict[str, tuple[dict[str, _Numbered], list[_Numbered]]]:
        """For each variable: the last definition for each host, and all for patterns of hosts."""
        index: dict[str, tuple[dict[str, _Numbered], list[_Numbered]]] = {}
        for entry in enumerate(self.definitions):
            _, definition = entry
            if definition.scope.kind is not Kind.HOST_VARS:
                continue
            own, patterns = index.setdefault(definition.name, ({}, []))
            if is_pattern(definition.scope.name):
                patterns.append(entry)
            else:
                own[definition.scope.name] = entry
        return index

    @cached_property
    def _group_lines(self) -> dict[str, Location]:
        return _first_lines(self.groups)

    @cached_property
    def _host_lines(self) -> dict[str, Location]:
        return _first_lines(self.hosts)

    @cached_property
    def _host_patterns(self) -> list[Mention]:
        return [mention for mention in self.hosts if is_pattern(mention.name)]

    def add_vars(self, file: SourceFile, root: yaml.Node | None) -> None:
        """Add a file of `group_vars/` or `host_vars/`."""
        mention = Mention(file.owner, Location(file.path), declares=False)
        (self.groups if file.kind is Kind.GROUP_VARS else self.hosts).append(mention)
        self._add_definitions(Scope(file.kind, file.owner), file.path, root)

    def add_inventory(self, path: Path, root: yaml.Node | None) -> None:
        """Add a YAML file that declares groups and hosts."""
        if not isinstance(root, yaml.MappingNode):
            self.problems.append(
                Problem(
                    "this inventory file holds no groups",
                    Location(path, line_of(root) if root else 0),
                    hint="it begins with a group, e.g. `all:`; docs/inventory.md has an example",
                    code="HPC1021",
                )
            )
            return
        if any(key == "plugin" for key, _, _ in items(root)):
            self.opaque.append(path)
            return  # an inventory plugin's configuration: what it yields has no lines
        for name, key, value in items(root):
            self._add_group(name, path, key, value)

    def _add_group(self, name: str, path: Path, key: yaml.Node, body: yaml.Node) -> None:
        self.groups.append(Mention(name, Location(path, line_of(key))))
        for part, part_key, part_body in self._mapping(body, path, f"the group {name}"):
            if part == "vars":
                self._add_definitions(Scope(Kind.GROUP_VARS, name), path, part_body)
            elif part == "hosts":
                self._add_hosts(path, part_body, name)
            elif part == "children":
                for child, child_key, child_body in self._mapping(
                    part_body, path, f"children of {name}"
                ):
                    self._add_group(child, path, child_key, child_body)
            else:
                self.problems.append(_bad_part(name, part, Location(path, line_of(part_key))))

    def _add_hosts(self, path: Path, body: yaml.Node, group: str) -> None:
        if isinstance(body, yaml.ScalarNode) and body.value and body.tag.endswith(":str"):
            self.hosts.append(Mention(str(body.value), Location(path, line_of(body))))
            return
        for name, key, value in self._mapping(body, path, f"hosts of {group}"):
            where = Location(path, line_of(key))
            self.hosts.append(Mention(name, where))
            if misread := _misread(name, key):
                message, (hint, code) = f"{name} is no valid NodeName", misread
                self.problems.append(Problem(message, where, hint, name, code=code))
            self._add_definitions(Scope(Kind.HOST_VARS, name), path, value)

    def _add_definitions(self, scope: Scope, path: Path, body: yaml.Node | None) -> None:
        if body is None:
            return
        for name, key, value in self._mapping(body, path, f"variables of {scope}"):
            where = Location(path, line_of(key))
            self.definitions.append(Definition(name, scope, where, value))

    def _mapping(
        self, node: yaml.Node, path: Path, what: str
    ) -> Iterable[tuple[str, yaml.Node, yaml.Node]]:
        """Items of a mapping; nothing for an empty value; a problem for anything else."""
        if isinstance(node, yaml.MappingNode):
            return items(node)
        if not (isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null")):
            self.problems.append(
                Problem(
                    f"{what}: a mapping (`name: value` or `name:`) is expected here",
                    Location(path, line_of(node)),
                    hint="write one `name:` a line, indented, without a leading dash",
                    code="HPC1023",
                )
            )
        return ()


def _misread(name: str, key: yaml.Node) -> tuple[str, str] | None:
    """Say how to write a host's name that Ansible would refuse without a line number.

    The hint, and the mistake's code.
    """
    if not str(key.tag).endswith(":str"):
        hint = "YAML reads it as something else than text; begin it with a letter"
        return f"{hint}, e.g. node{name}", "HPC1101"
    if _SLURM_RANGE.search(name):
        written = _SLURM_RANGE.sub(r"[\1:\2]", name)
        return f"Ansible writes a range with a colon: {written}", "HPC1102"
    return None


def is_pattern(name: str) -> bool:
    """Whether a name stands for several hosts."""
    return _RANGE.search(name) is not None


def matches(pattern: str, host: str) -> bool:
    """Whether a host comes from a pattern of Ansible's, e.g. gpu[01:08]; bounds are not checked."""
    if not is_pattern(pattern):
        return pattern == host
    return _expression(pattern).fullmatch(host) is not None


@lru_cache(maxsize=1024)
def _expression(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"\[\w+:\w+(?::\d+)?\]", pattern)
    return re.compile(r"\w+".join(re.escape(text) for text in parts))


def _first_lines(mentions: list[Mention]) -> dict[str, Location]:
    """Map each name to its first mention; a declaration goes before a variables file."""
    lines: dict[str, Location] = {}
    for mention in sorted(mentions, key=lambda mention: not mention.declares):
        lines.setdefault(mention.name, mention.where)
    return lines


def _bad_part(group: str, part: str, where: Location) -> Problem:
    return Problem(
        f"{part} is no part of the group {group}: Ansible skips it",
        where,
        hint="a group holds `hosts:`, `children:` and `vars:`; "
        "names of groups go below `children:`, of hosts below `hosts:`",
        code="HPC1022",
    )
