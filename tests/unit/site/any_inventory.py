"""Inventories of any form, to hold hpcsite's reading of them against Ansible's own.

Few names of variables stand in many places, so that what wins is told by every rule of Ansible's.
"""

import json
import random
from pathlib import Path
from typing import Any

import yaml

from tests.unit.site.mini import SiteFolder

VARIABLES = tuple(f"local_{letter}" for letter in "abcdef")
PRIORITY = "ansible_group_priority"
_MAX_GROUPS = 9


class AnyInventory:
    """Writes one inventory; the same seed writes the same one."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - no secrets are made of it
        self.folder = SiteFolder(folder)
        self.number = 0
        letters = [f"{letter}{n}" for n, letter in enumerate("zmaqykbxc", 1)]
        self.random.shuffle(letters)
        # A group lies below groups further left only: Ansible refuses loops.
        self.groups = letters[: self.random.randint(2, _MAX_GROUPS)]
        self.hosts = [f"n{number:02}" for number in range(1, self.random.randint(3, 10))]
        # Of both, a group must have no two: that is for the tool to tell.
        self.ranked = {group: self.random.choice("fffd----") for group in self.groups}

    def write(self) -> None:
        """Write all files."""
        self._write("hosts.yml", self._tree(self.random.choice([0.5, 1.0])))
        if self.random.random() < 0.4:
            self._write("later.yaml", self._tree(0.3))
        if self.random.random() < 0.6:
            self.folder.write("more", self._ini())
        if self.random.random() < 0.2:
            self._script()
        for group in ("all", "all", "ungrouped", *self.groups):
            self._vars_of("group_vars", group, 0.6)
        for host in self.hosts:
            self._vars_of("host_vars", host, 0.2)

    def _write(self, name: str, content: object) -> None:
        self.folder.write(name, yaml.safe_dump(content, sort_keys=False))

    def _vars_of(self, kind: str, owner: str, share: float) -> None:
        """Write a file of variables, or a folder of some."""
        if self.random.random() > share or any((self.folder.path / kind).glob(f"{owner}*")):
            return
        one = self.random.choice([f"{owner}.yml", f"{owner}.yaml", owner, f"{owner}.json"])
        names = [one] if self.random.random() < 0.6 else [f"{owner}/b.yml", f"{owner}/sub/a.yml"]
        for name in names:
            found = self._variables(0.4)
            if kind == "group_vars" and self.ranked.get(owner) == "d":
                found[PRIORITY] = self.random.randint(1, 9)
            text = json.dumps(found) if name.endswith(".json") else yaml.safe_dump(found)
            self.folder.write(f"{kind}/{name}", text)

    def _variables(self, share: float) -> dict[str, Any]:
        """Make values that all differ, some of them mappings or lists."""
        found: dict[str, Any] = {}
        for name in VARIABLES:
            if self.random.random() < share:
                self.number += 1
                forms = [self.number, f"v{self.number}", {f"k{self.number}": 1}, [self.number]]
                found[name] = self.random.choice(forms)
        return found

    def _group_variables(self, group: str, share: float) -> dict[str, Any]:
        found = self._variables(share)
        if self.ranked.get(group) == "f":
            found[PRIORITY] = self.random.randint(1, 12)
        return found

    def _tree(self, share: float) -> dict[str, Any]:
        """Make a YAML inventory: groups below `all` and below each other, some beside it."""
        bodies: dict[str, dict[str, Any]] = {}
        for place, group in enumerate(self.groups):
            below = [name for name in self.groups[place + 1 :] if self.random.random() < 0.3]
            mine = {name: self._host_body() for name in self.hosts if self.random.random() < 0.3}
            if self.random.random() < 0.2:
                mine["r[01:03]"] = self._host_body()
            parts = {"hosts": mine, "children": dict.fromkeys(below)}
            bodies[group] = {name: part for name, part in parts.items() if part}
            if self.random.random() < share:
                bodies[group]["vars"] = self._group_variables(group, 0.4)
        top: dict[str, Any] = {
            "hosts": {name: self._host_body() for name in self.hosts},
            "vars": self._variables(0.5),
            "children": {},
        }
        beside: dict[str, Any] = {}
        for group, body in bodies.items():
            (top["children"] if self.random.random() < 0.7 else beside)[group] = body
        if self.random.random() < 0.3:
            beside["ungrouped"] = {"vars": self._variables(0.5)}
        return {"all": top, **beside}

    def _host_body(self) -> dict[str, Any] | None:
        return self._variables(0.3) if self.random.random() < 0.2 else None

    def _ini(self) -> str:
        lines = ["lonely local_a=1", ""]
        for place, group in enumerate(self.groups):
            if self.random.random() < 0.5:
                lines += [f"[{group}]", *self.random.sample(self.hosts, 1), "s[1:3] local_f=7", ""]
            below = [name for name in self.groups[place + 1 :] if self.random.random() < 0.2]
            if below:
                lines += [f"[{group}:children]", *below, ""]
            if self.random.random() < 0.4:
                found = self._group_variables(group, 0.4)
                lines += [f"[{group}:vars]", *(f"{k}={v}" for k, v in found.items()), ""]
        return "\n".join([*lines, "[all:vars]", f"local_b = {self.number}", ""])

    def _script(self) -> None:
        """Write an inventory that is run: it has no lines."""
        group = self.random.choice(self.groups)
        body = {"hosts": ["t1", self.hosts[0]], "vars": self._variables(0.3)}
        answer = {group: body, "_meta": {"hostvars": {"t1": self._variables(0.3)}}}
        self.folder.write("script", f"#!/bin/sh\necho '{json.dumps(answer)}'\n")
        (self.folder.path / "script").chmod(0o755)
