"""Catalogue files as plain values that know their lines, and profiles laid over their base."""

from dataclasses import dataclass
from typing import Any

import yaml
from yaml.constructor import SafeConstructor

from hpcsite.errors import Location
from hpcsite.site.yamlfile import YamlFile, items, line_of


@dataclass
class Raw:
    """A value of a file: a scalar, a list of `Raw`, or a mapping of `Raw` by key."""

    value: Any
    where: Location
    site: bool = False

    def get(self, key: str) -> "Raw | None":
        """Give the value below a key; None where there is none."""
        found = self.value.get(key) if isinstance(self.value, dict) else None
        return found if isinstance(found, Raw) else None

    def at(self, path: tuple[str | int, ...]) -> "Raw":
        """Give the value at a path, or the nearest above it that there is."""
        here = self
        for step in path:
            below = here.value
            if isinstance(below, dict):
                found = below.get(step)
            elif isinstance(below, list) and isinstance(step, int):
                found = below[step] if step < len(below) else None
            else:
                found = None
            if found is None:
                break
            here = found
        return here

    def plain(self) -> Any:  # noqa: ANN401 - whatever the file holds
        """Give the value without its lines."""
        if isinstance(self.value, dict):
            return {key: below.plain() for key, below in self.value.items()}
        if isinstance(self.value, list):
            return [below.plain() for below in self.value]
        return self.value


def raw_of(file: YamlFile, node: yaml.Node, *, site: bool) -> Raw:
    """Turn a node of a file into plain values."""
    where = Location(file.path, line_of(node))
    if isinstance(node, yaml.MappingNode):
        below = {}
        for key, at, value in items(node):
            below[key] = raw_of(file, value, site=site)
            below[key].where = Location(file.path, line_of(at))
        return Raw(below, where, site)
    if isinstance(node, yaml.SequenceNode):
        return Raw([raw_of(file, item, site=site) for item in node.value], where, site)
    return Raw(_scalar(node), where, site)


def _scalar(node: yaml.Node) -> Any:  # noqa: ANN401 - whatever stands there
    """Give text, number, true or null; what is none of these is the text as it stands."""
    if str(node.tag).rpartition(":")[2] not in {"int", "float", "bool", "null"}:
        return str(node.value)
    try:
        return SafeConstructor().construct_object(node)
    except (yaml.YAMLError, ValueError):
        return str(node.value)


def laid_over(base: Raw, over: Raw) -> Raw:
    """Lay some fields over a base: mappings field by field, everything else as a whole."""
    if not (isinstance(base.value, dict) and isinstance(over.value, dict)):
        return over
    # A figure is one thing: its source must not stay behind when its value changes.
    if {"value", "profiles"} & (base.value.keys() | over.value.keys()):
        return over
    merged = dict(base.value)
    for key, value in over.value.items():
        merged[key] = laid_over(merged[key], value) if key in merged else value
    return Raw(merged, over.where, over.site)
