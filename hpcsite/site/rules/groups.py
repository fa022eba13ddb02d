"""Groups: known, not empty, complete, and each host in those that it needs."""

from collections.abc import Iterator

from hpcsite.errors import Location, Problem
from hpcsite.site.draft import Draft
from hpcsite.site.groups import FEATURES, IMPLICIT
from hpcsite.site.names import did_you_mean, fold, nearest

_ACCOUNTED = ", e.g. the same one; jobs are accounted from the start"
_NEED_HINTS = {"slurm_dbd": _ACCOUNTED, "mariadb": _ACCOUNTED}


def _node_groups(draft: Draft) -> list[str]:
    return draft.names("node_groups") or []


def _known(draft: Draft) -> set[str]:
    return {*FEATURES, *IMPLICIT, *_node_groups(draft), *draft.keys.custom_groups}


def unknown_groups(draft: Draft) -> dict[str, str | None]:
    """Each group that is not known, and the name that it was probably meant to be."""
    known = _known(draft)
    declared = {mention.name for mention in draft.sources.groups if mention.declares}
    names = sorted((declared | set(draft.inventory.groups)) - known)
    return {name: nearest(name, known) for name in names}


def _is_mistyped(draft: Draft, group: str) -> bool:
    """Whether a group is there under an unknown name, which is reported by itself."""
    return group in unknown_groups(draft).values()


def groups_are_known(draft: Draft) -> Iterator[Problem]:
    """Every group is a feature, a node group or one of the site's own."""
    # With one of these keys broken, any group may be a node group or one of the site's own.
    sure = draft.names("node_groups") is not None and draft.is_whole("custom_groups")
    for name, meant in unknown_groups(draft).items():
        if meant or sure:
            yield draft.group_problem(
                f"unknown group {name}", name, _unknown_hint(draft, meant), code="HPC1110"
            )


def _unknown_hint(draft: Draft, meant: str | None) -> str:
    if meant is None:
        return (
            "describe it in site_node_groups if its hosts are alike as compute nodes, or list "
            "it in site_custom_groups if it is of your own use"
        )
    if meant in _node_groups(draft) and meant not in draft.inventory.groups:
        return f"did you mean {meant}? write it here and in site_node_groups alike"
    return f"did you mean {meant}?"


def variables_have_owners(draft: Draft) -> Iterator[Problem]:
    """Check that a file of group_vars or host_vars belongs to a group or host that exists."""
    groups = _known(draft) | set(draft.inventory.groups)
    hosts = set(draft.inventory.hosts)
    for mentions, known, what, code in (
        (draft.sources.groups, groups, "group", "HPC1112"),
        (draft.sources.hosts, hosts, "host", "HPC1113"),
    ):
        for mention in mentions:
            if not mention.declares and mention.name not in known:
                yield Problem(
                    f"variables of the {what} {mention.name}, which is not in the inventory",
                    mention.where,
                    did_you_mean(mention.name, known, f"remove the file, or add the {what}"),
                    mention.name,
                    code=code,
                )


def groups_are_not_empty(draft: Draft) -> Iterator[Problem]:
    """Check that a group that stands in the inventory has hosts, and so has a node group."""
    declared = {m.name for m in draft.sources.groups if m.declares} - set(IMPLICIT)
    for name in sorted(declared & _known(draft)):
        if not draft.inventory.groups.get(name):
            yield draft.group_problem(
                f"the group {name} has no hosts",
                name,
                "put hosts into it, or remove it",
                code="HPC1114",
            )
    for name in _node_groups(draft):
        is_there = name in declared or name in draft.inventory.groups
        if not is_there and not _is_mistyped(draft, name):
            yield draft.problem(
                f"the node group {name} is no group of the inventory",
                ("site_node_groups", name),
                did_you_mean(
                    name,
                    set(draft.inventory.groups) - set(FEATURES),
                    f"add the group {name} with its hosts below slurm_compute",
                ),
                code="HPC1115",
            )


def hosts_have_groups(draft: Draft) -> Iterator[Problem]:
    """Every host is in some group, else nothing would be done with it."""
    without = [host for host in draft.inventory.hosts if not draft.inventory.groups_of(host)]
    for where, hosts in draft.by_line(without):
        yield Problem(
            f"in no group: {fold(hosts)}",
            where,
            f"put each host into one of {', '.join(FEATURES)}, or into a node group",
            hosts[0],
            code="HPC1116",
        )


def features_are_complete(draft: Draft) -> Iterator[Problem]:
    """There is a controller; each feature's own needs are there; no service is doubled."""
    groups = draft.inventory.groups
    if not groups.get("slurm_controller") and not _is_mistyped(draft, "slurm_controller"):
        yield Problem(
            "the site has no Slurm controller",
            Location(draft.path),
            "put one host into the group slurm_controller",
            "slurm_controller",
            code="HPC1117",
        )
    for feature in FEATURES.values():
        hosts = groups.get(feature.name, frozenset())
        if feature.hosts and len(hosts) > feature.hosts:
            yield draft.group_problem(
                f"{feature.name} has {len(hosts)} hosts ({fold(hosts)}); it can have one",
                feature.name,
                _one_hint(feature.name),
                code="HPC1118",
            )
        for need in feature.needs if hosts else ():
            told = need == "slurm_controller" or _is_mistyped(draft, need)
            if not groups.get(need) and not told:
                yield draft.group_problem(
                    f"{feature.name} needs {need}, which has no hosts",
                    feature.name,
                    f"put a host into {need}" + _NEED_HINTS.get(need, ""),
                    code="HPC1119",
                )


def _one_hint(name: str) -> str:
    if name == "slurm_controller":
        return "keep one host in it; those that stand by go to slurm_backup_controller"
    return "keep one host in it"


def backups_are_other_hosts(draft: Draft) -> Iterator[Problem]:
    """Check that no controller stands by for itself."""
    groups = draft.inventory.groups
    backups = groups.get("slurm_backup_controller", frozenset())
    for host in sorted(backups & groups.get("slurm_controller", frozenset())):
        yield draft.host_problem(
            f"{host} is the controller and its own backup",
            host,
            "put another host into slurm_backup_controller, or remove the group",
            code="HPC1124",
        )


def compute_nodes_have_node_groups(draft: Draft) -> Iterator[Problem]:
    """Check that each compute node is in a node group, and no other host is."""
    names = draft.names("node_groups")
    if names is None:
        return
    groups = draft.inventory.groups
    compute = groups.get("slurm_compute", frozenset())
    mistyped = [name for name, meant in unknown_groups(draft).items() if meant in names]
    grouped = frozenset().union(*(groups.get(name, frozenset()) for name in (*names, *mistyped)))
    without = [host for host in draft.inventory.hosts if host in compute - grouped]
    for where, hosts in draft.by_line(without):
        yield Problem(
            f"compute nodes in no node group: {fold(hosts)}",
            where,
            f"put each into one of {', '.join(names)}"
            if names
            else "describe a node group in site_node_groups, and put the hosts into it",
            hosts[0],
            code="HPC1120",
        )
    for name in () if _is_mistyped(draft, "slurm_compute") else names:
        if stray := groups.get(name, frozenset()) - compute:
            yield draft.group_problem(
                f"the node group {name} is not below slurm_compute: {fold(stray)}",
                name,
                f"move `{name}:` to the `children:` of slurm_compute",
                code="HPC1121",
            )


def node_groups_are_disjoint(draft: Draft) -> Iterator[Problem]:
    """Check that no host is in two node groups."""
    for host in draft.inventory.hosts:
        mine = sorted(draft.inventory.groups_of(host).intersection(_node_groups(draft)))
        if len(mine) > 1:
            yield draft.host_problem(
                f"the host {host} is in {len(mine)} node groups: {', '.join(mine)}",
                host,
                "keep it in one; to reach it by several names, use partitions or features",
                code="HPC1122",
            )


def login_is_not_compute(draft: Draft) -> Iterator[Problem]:
    """Check that no host runs sackd and slurmd: each keeps its own copy of the configuration."""
    login = draft.inventory.groups.get("slurm_login", frozenset())
    for host in sorted(login & draft.inventory.groups.get("slurm_compute", frozenset())):
        yield draft.host_problem(
            f"the host {host} is both a login node and a compute node",
            host,
            "take it out of slurm_login: a compute node has Slurm's commands anyway",
            code="HPC1123",
        )


RULES = (
    groups_are_known,
    variables_have_owners,
    groups_are_not_empty,
    hosts_have_groups,
    features_are_complete,
    backups_are_other_hosts,
    compute_nodes_have_node_groups,
    node_groups_are_disjoint,
    login_is_not_compute,
)
