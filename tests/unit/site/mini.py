"""A small valid site in a folder, and a quick stand-in for ansible-inventory.

The stand-in knows what the tests need: groups, children, group_vars/all, group_vars/<group> and
host_vars. test_site_load.py holds it equal to the real tool.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hpcsite.errors import InvalidSiteError, Problem
from hpcsite.site import load
from hpcsite.site.inventory import Inventory, parse_inventory
from hpcsite.site.model import Site

HOSTS = """\
all:
  children:
    slurm_controller:
      hosts:
        head:
          ansible_host: 10.9.0.10
    slurm_dbd:
      hosts:
        head:
    mariadb:
      hosts:
        head:
    slurm_login:
      hosts:
        login:
          ansible_host: 10.9.0.11
    slurm_compute:
      children:
        gpu:
          hosts:
            gpu01:
              ansible_host: 10.9.0.21
            gpu02:
              ansible_host: 10.9.0.22
"""
SITE = """\
site_name: mini
site_domain: mini.example
site_timezone: Europe/Berlin
site_verify_user: alice
site_groups:
  - name: research
    gid: 2000
site_users:
  - name: alice
    uid: 2001
    group: research
  - name: bob
    uid: 2002
"""
SLURM = """\
site_node_groups:
  gpu:
    hardware:
      sockets: 1
      cores_per_socket: 8
      memory_mib: 4096
    gpus:
      count: 8
site_partitions:
  - name: batch
    node_groups: [gpu]
    default: true
    max_time: 1-00:00:00
    default_time: "10:00"
"""


@dataclass
class SiteFolder:
    """An inventory folder that a test edits."""

    path: Path

    def write(self, name: str, text: str) -> None:
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace text that must be there; an empty `old` appends (and makes the file)."""
        target = self.path / name
        text = target.read_text(encoding="utf-8") if target.exists() else ""
        assert old in text, f"{old!r} is not in {name}"
        self.write(name, text.replace(old, new, 1) if old else text + new)

    def line(self, name: str, text: str) -> int:
        lines = (self.path / name).read_text(encoding="utf-8").splitlines()
        return next(number for number, line in enumerate(lines, start=1) if text in line)

    def load(self) -> Site:
        return load.load_site(self.path)

    def problems(self) -> list[Problem]:
        try:
            load.load_site(self.path)
        except InvalidSiteError as error:
            return error.problems
        return []

    def places(self) -> list[tuple[str, int, str]]:
        """File, line and message of each problem."""
        return [
            (str(p.where.path.relative_to(self.path)), p.where.line, p.message)
            for p in self.problems()
            if p.where
        ]


def resolve(path: Path, _sources: object = None) -> Inventory:
    """Do what ansible-inventory does, for what the tests write."""
    hosts: dict[str, dict[str, Any]] = {}
    groups: dict[str, dict[str, Any]] = {}
    inventory = yaml.safe_load((path / "hosts.yml").read_text(encoding="utf-8"))

    def visit(name: str, body: dict[str, Any] | None) -> None:
        group = groups.setdefault(name, {"hosts": [], "children": []})
        for host, variables in ((body or {}).get("hosts") or {}).items():
            hosts.setdefault(host, {}).update(variables or {})
            group["hosts"].append(host)
        for child, below in ((body or {}).get("children") or {}).items():
            visit(child, below)
            group["children"].append(child)

    for name, body in inventory.items():
        visit(name, body)
    grouped = {h for name, group in groups.items() if name != "all" for h in group["hosts"]}
    lonely = [host for host in hosts if host not in grouped]
    groups["ungrouped"] = {"hosts": lonely}
    groups["all"]["hosts"] = []
    groups["all"]["children"] = ["ungrouped", *groups["all"]["children"]]
    kept = {name: group for name, group in groups.items() if any(group.values())}
    bare = parse_inventory({**kept, "_meta": {"hostvars": hosts}})
    everyone = _vars(path / "group_vars" / "all")
    merged: dict[str, dict[str, Any]] = {}
    for host in bare.hosts:
        merged[host] = dict(everyone)
        for group_name in sorted(bare.groups_of(host), key=lambda n: len(bare.parents[n])):
            merged[host] |= _vars(path / "group_vars" / group_name)
        merged[host] |= hosts[host] | _vars(path / "host_vars" / host)
    return Inventory(hosts=merged, groups=bare.groups, parents=bare.parents)


def _vars(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for file in sorted(folder.glob("*.yml")):
        found |= yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    return found
