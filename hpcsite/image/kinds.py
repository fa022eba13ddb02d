"""Which hosts can share an image, and what decides what it holds: pure."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from hpcsite.image.recipe import Recipe
from hpcsite.paths import content_dir
from hpcsite.site.groups import FEATURES
from hpcsite.site.model import Host, Site
from hpcsite.site.roles import role_options

# Raised when the same description must give a new image although nothing below says so.
SCHEMA = 1
STEPS = Path(__file__).with_name("steps")
_WORD = re.compile(r"\w+")
# The module `daemon` with a name that is the same everywhere; chrony's is not, and may run before.
_DAEMON = re.compile(r"^ *daemon:\n *name: ([\w-]+)$", re.MULTILINE)


@dataclass(frozen=True)
class Kind:
    """What hosts have in common that share an image: features, and variables of install stages."""

    features: tuple[str, ...]
    builds: bool  # whether users build programs there
    variables: str  # JSON

    @property
    def name(self) -> str:
        """What a person calls it."""
        return "+".join(self.features) or "plain"

    def digest(self, recipe: Recipe) -> str:
        """Return a name for what an image of this kind holds: equal contents, equal names."""
        parts = {
            "schema": SCHEMA,
            "base": recipe.digest(),
            "features": self.features,
            "builds": self.builds,
            "daemons": daemons(),
            "variables": self.variables,
            "install": _install_stage(content_dir()),
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def kind_of(site: Site, host: Host) -> Kind:
    """Return the kind of a host."""
    known = _variables(content_dir())
    builders = site.in_group("slurm_login") or site.in_group("slurm_controller")
    return Kind(
        features=tuple(name for name in FEATURES if name in host.groups),
        builds=host in builders,
        variables=json.dumps(
            {name: value for name, value in sorted(host.vars.items()) if name in known},
            sort_keys=True,
            default=str,
        ),
    )


def by_kind(site: Site, hosts: Iterable[Host]) -> dict[Kind, list[Host]]:
    """Sort hosts by their kinds, in their order."""
    found: dict[Kind, list[Host]] = {}
    for host in hosts:
        found.setdefault(kind_of(site, host), []).append(host)
    return found


def daemons() -> tuple[str, ...]:
    """Return the daemons that roles start only when they have configured them.

    They enable them then, too: in an image, which boots before it is configured, they are not.
    """
    paths = sorted(content_dir().glob("roles/*/tasks/*.yml"))
    texts = (path.read_text(encoding="utf-8") for path in paths)
    return tuple(sorted({name for text in texts for name in _DAEMON.findall(text)}))


@cache
def _variables(content: Path) -> frozenset[str]:
    """Return the roles' public variables that install stages use."""
    return frozenset(role_options()) & _read(content)[1]


@cache
def _install_stage(content: Path) -> Mapping[str, Any]:
    """Return everything that decides what install stages do, and no other setting of the roles."""
    steps = {path.name: path.read_text(encoding="utf-8") for path in sorted(STEPS.iterdir())}
    return {"files": _stage_texts(content), "values": _read(content)[0], "steps": steps}


def _read(content: Path) -> tuple[dict[str, Any], frozenset[str]]:
    """Return the roles' own values that install stages read, and all words in either."""
    values = {
        f"{path.relative_to(content)}: {name}": (name, value)
        for pattern in ("roles/*/vars/*.yml", "roles/*/defaults/main.yml")
        for path in sorted(content.glob(pattern))
        for name, value in (yaml.safe_load(path.read_text(encoding="utf-8")) or {}).items()
    }
    words = set(_WORD.findall("\n".join(_stage_texts(content).values())))
    used: dict[str, Any] = {}
    while True:
        found = {
            key: value
            for key, (name, value) in values.items()
            # The role `packages` puts the names of these together.
            if name in words or name.endswith("_packages")
        }
        if found.keys() == used.keys():
            return used, frozenset(words)
        used = found
        words.update(_WORD.findall(json.dumps(used, default=str)))


def _stage_texts(content: Path) -> dict[str, str]:
    patterns = (
        "playbooks/image.yml",
        "plugins/modules/missing_packages.py",
        "roles/*/tasks/install.yml",
        "roles/common/tasks/packages*.yml",
        "roles/common/tasks/set_vars.yml",
    )
    return {
        str(path.relative_to(content)): path.read_text(encoding="utf-8")
        for pattern in patterns
        for path in sorted(content.glob(pattern))
    }
