"""Limits of QOS, accounts and associations: of GRES that some node has, and enforced."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from hpcsite.errors import Problem
from hpcsite.site.draft import Draft, key_text
from hpcsite.site.hardware import mig_gres_type
from hpcsite.site.names import did_you_mean
from hpcsite.site.sources import KeyPath
from hpcsite.slurm.tres import Tres, read_tres

# Key of the site → fields of its entries that hold limits by TRES.
_LIMITS = {
    "qos": ("max_tres_per_user", "max_tres_per_job", "grp_tres"),
    "accounts": ("grp_tres", "max_tres_per_job"),
    "associations": ("grp_tres",),
}
_ENFORCE = "accountingstorageenforce"
# slurm.conf(5): any of these makes Slurm hold jobs to limits.
_ENFORCING = frozenset(("all", "limits", "safe"))
_SHARES = {"shard": "shards", "mps": "mps"}


@dataclass
class _There:
    """What the nodes of the site have: names of GRES, and the types of GPUs."""

    names: set[str] = field(default_factory=set)
    gpu_types: set[str] = field(default_factory=set)


def limited_gres_are_there(draft: Draft) -> Iterator[Problem]:
    """Check that some node has the GRES that a limit is about: it would never hold else."""
    there = _there(draft)
    if there is None:
        return
    for path, text in _limits(draft):
        tres = read_tres(text)
        if tres is None or tres.kind != "gres":
            continue
        if tres.name not in there.names:
            yield draft.problem(
                f"no node has the GRES {tres.name}, which {text} is about",
                path,
                did_you_mean(tres.name, there.names, _declare(tres.name)),
                code="HPC1227",
            )
        elif tres.type and (tres.name != "gpu" or tres.type not in there.gpu_types):
            known = ", ".join(sorted(there.gpu_types)) or "none"
            yield draft.problem(
                f"no node has a GRES {tres.name} of type {tres.type}",
                path,
                f"types of GPUs here: {known}"
                if tres.name == "gpu"
                else f"write {Tres('gres', tres.name)}: shares have no types",
                code="HPC1227",
            )


def limits_are_enforced(draft: Draft) -> Iterator[Problem]:
    """Doubt limits of a site whose own AccountingStorageEnforce lets jobs exceed them."""
    for name, value in draft.keys.slurm_parameters.items():
        if name.lower() != _ENFORCE or value is None:
            continue
        words = {word.strip() for word in str(value).lower().split(",")}
        if words.isdisjoint(_ENFORCING) and (limit := next(_any_limit(draft), None)):
            yield draft.problem(
                f"{name} is {value}, so no job is held to the limits of the site, e.g. "
                f"{key_text(limit)}",
                ("site_slurm_parameters", name),
                f"remove {name}, which hpcsite then writes, or add limits to it",
                code="HPC1237",
            )


def _any_limit(draft: Draft) -> Iterator[KeyPath]:
    for path, _ in _limits(draft):
        yield path[:3]
    for key in _LIMITS:
        for number, entry in draft.entries(key):
            for limit in ("max_wall", "max_jobs", "max_jobs_per_user", "max_submit_per_user"):
                if getattr(entry, limit, None) is not None:
                    yield (f"site_{key}", number, limit)


def _limits(draft: Draft) -> Iterator[tuple[KeyPath, str]]:
    for key, fields in _LIMITS.items():
        for number, entry in draft.entries(key):
            for name in fields:
                for text in getattr(entry, name):
                    yield (f"site_{key}", number, name, text), text


def _there(draft: Draft) -> _There | None:
    """Collect the GRES of all node groups; None while some of them are not known."""
    broken = {"gpus", "hardware_profile", "mig", "shards", "mps"}
    for path in draft.invalid:
        if path[0] == "site_node_groups" and (len(path) < 3 or path[2] in broken):
            return None
    there = _There()
    for group in draft.keys.node_groups.values():
        profile = group.hardware_profile
        if group.gpus is None and profile and profile not in draft.catalogue.nodes:
            return None
        if group.gpus is None:
            continue
        there.names.add("gpu")
        there.names |= {name for name, key in _SHARES.items() if getattr(group, key)}
        there.gpu_types |= {group.gpus.type} if group.gpus.type else set()
        there.gpu_types |= {mig_gres_type(name) for entry in group.mig for name in entry.profiles}
    return there


def _declare(name: str) -> str:
    if name in _SHARES:
        return f"set {_SHARES[name]} of a group in site_node_groups, or remove the limit"
    if name == "gpu":
        return "declare `gpus` of a group in site_node_groups, or remove the limit"
    return "hpcsite sets up the GRES gpu, shard and mps; remove the limit"


RULES = (limited_gres_are_there, limits_are_enforced)
