"""GPUs that are cut into MIG instances, and those that jobs share."""

from collections.abc import Iterator

from hpcsite.errors import Problem
from hpcsite.site.catalogue import Gpu, mig_layout_problems
from hpcsite.site.draft import Draft
from hpcsite.site.hardware import gpu_ranges, gpus_cut
from hpcsite.site.model import Mig, NodeGroup
from hpcsite.site.names import did_you_mean, fold, unfold
from hpcsite.site.rules.hardware import broken_fields
from hpcsite.site.sources import KeyPath

_KEY = "site_node_groups"


def _groups(draft: Draft) -> Iterator[tuple[str, NodeGroup]]:
    """Give the groups of which it is known which GPUs they have."""
    broken = broken_fields(draft)
    for name, group in draft.keys.node_groups.items():
        profile = group.hardware_profile
        unknown = group.gpus is None and profile and profile not in draft.catalogue.nodes
        if not unknown and broken.isdisjoint({(name, "gpus"), (name, "hardware_profile")}):
            yield name, group


def _entries(draft: Draft, name: str, group: NodeGroup) -> Iterator[tuple[KeyPath, Mig]]:
    path: KeyPath = (_KEY, name, "mig")
    for number, entry in draft.numbered(path, group.mig):
        yield (*path, number), entry


def groups_have_the_gpus_they_divide(draft: Draft) -> Iterator[Problem]:
    """Check that nodes whose GPUs are cut or shared have GPUs."""
    for name, group in _groups(draft):
        for field in ("mig", "shards", "mps"):
            if getattr(group, field) and group.gpus is None:
                yield draft.problem(
                    f"the nodes of {name} have no GPUs, and `{field}` divides them",
                    (_KEY, name, field),
                    "declare `gpus`, or name a hardware_profile that has GPUs",
                    code="HPC1708",
                )


def mig_is_of_the_group(draft: Draft) -> Iterator[Problem]:
    """Check that each entry is about nodes of the group and GPUs that they have."""
    for name, group in _groups(draft):
        members = draft.inventory.groups.get(name, frozenset())
        for path, entry in _entries(draft, name, group):
            if entry.nodes is not None and (*path, "nodes") not in draft.invalid:
                yield from _nodes(draft, name, (*path, "nodes"), entry.nodes, members)
            if entry.gpus is not None and group.gpus is not None:
                yield from _numbers(draft, name, (*path, "gpus"), entry.gpus, group.gpus.count)


def _nodes(
    draft: Draft, name: str, path: KeyPath, text: str, members: frozenset[str]
) -> Iterator[Problem]:
    nodes = unfold(text)
    if nodes is None:
        yield draft.problem(
            f"{text} is no set of nodes",
            path,
            "write it as Slurm does, e.g. gpu[001-016]",
            code="HPC1709",
        )
    # A group without hosts has a rule.
    elif members and (others := [node for node in nodes if node not in members]):
        yield draft.problem(
            f"not in the node group {name}: {fold(others)}",
            path,
            did_you_mean(others[0], members, f"its nodes are {fold(members)}"),
            code="HPC1709",
        )


def _numbers(draft: Draft, name: str, path: KeyPath, text: str, count: int) -> Iterator[Problem]:
    if any(first > last for first, last in gpu_ranges(text)):
        yield draft.problem(
            f"{text} is no range of GPUs: it runs backwards",
            path,
            "write the lower number first",
            code="HPC1710",
        )
    elif any(last >= count for _, last in gpu_ranges(text)):
        yield draft.problem(
            f"the nodes of {name} have {count} GPUs, and this is of GPU "
            f"{max(last for _, last in gpu_ranges(text))}",
            path,
            f"GPUs are counted from 0, so the last is {count - 1}",
            code="HPC1710",
        )


def mig_layouts_do_not_overlap(draft: Draft) -> Iterator[Problem]:
    """Check that no GPU is cut by two entries."""
    for name, group in _groups(draft):
        if group.gpus is None:
            continue
        members = draft.inventory.groups.get(name, frozenset())
        cut: dict[tuple[str, int], KeyPath] = {}
        for path, entry in _entries(draft, name, group):
            if {(*path, "nodes"), (*path, "gpus")} & draft.invalid:
                continue
            nodes = members if entry.nodes is None else members & set(unfold(entry.nodes) or ())
            twice = {
                node
                for gpu in gpus_cut(entry, group.gpus.count)
                for node in nodes
                if cut.setdefault((node, gpu), path) != path
            }
            if twice:
                yield draft.problem(
                    f"the same GPUs of {fold(twice)} are cut by an earlier entry already",
                    path,
                    "each GPU has one entry, which lists all its instances: say with `nodes` and "
                    "`gpus` which one is meant",
                    code="HPC1711",
                )


def mig_layouts_fit(draft: Draft) -> Iterator[Problem]:
    """Check that the GPUs can hold their instances, as far as the catalogue knows them."""
    for name, group in _groups(draft):
        models = _models(draft, group)
        for path, entry in _entries(draft, name, group):
            if any(bad[: len(path)] == path for bad in draft.invalid):
                continue
            found = [mig_layout_problems(model, entry.profiles) for model in models]
            if any(not problems for problems in found):
                continue
            sure = [problems for problems in found if not problems[0].unknown]
            where: KeyPath = (*path, "profiles")
            if sure and len(sure) == len(found):
                # The layout fits none of the models that it may be; the first says why.
                for problem in sure[0]:
                    yield draft.problem(problem.message, where, problem.hint, code="HPC1712")
            elif group.gpus is not None:
                kind = group.gpus.type or "these GPUs"
                yield draft.problem(
                    f"unknown: whether {kind} can be cut so; the catalogue does not say how they "
                    "divide",
                    where,
                    "name a hardware_profile, or give `mig` of the GPU in the site's own hardware "
                    "files",
                    code="HPC1713",
                )


def _models(draft: Draft, group: NodeGroup) -> list[Gpu]:
    """Find which models of GPU the nodes may have: that of the profile, else all of the type."""
    profile = draft.catalogue.nodes.get(group.hardware_profile or "")
    if profile is not None and profile.gpu is not None:
        return [profile.gpu]
    if group.gpus is None or group.gpus.type is None:
        return []
    return [gpu for gpu in draft.catalogue.gpus.values() if gpu.gres_type == group.gpus.type]


def gpus_are_divided_in_one_way(draft: Draft) -> Iterator[Problem]:
    """Check that no GPU is cut and shared, and that whole GPUs beside instances have a type."""
    for name, group in _groups(draft):
        shares = [field for field in ("shards", "mps") if getattr(group, field)]
        for field in shares if group.mig else ():
            yield draft.problem(
                f"the GPUs of {name} are cut by `mig` and shared by `{field}`",
                (_KEY, name, field),
                "put the nodes with MIG instances into a node group of their own",
                code="HPC1714",
            )
        if group.gpus is None:
            continue
        for field in shares:
            number = getattr(group, field)
            if number % group.gpus.count:
                yield draft.problem(
                    f"{number} {field} on {group.gpus.count} GPUs of a node: some GPUs get more "
                    "of them than others",
                    (_KEY, name, field),
                    f"write a multiple of {group.gpus.count}",
                    code="HPC1715",
                )
        if group.gpus.type is None and _some_whole(draft, name, group):
            yield draft.problem(
                f"nodes of {name} have MIG instances beside whole GPUs, which have no type",
                (_KEY, name, "gpus"),
                "give `gpus` a type, e.g. h100: gres.conf(5) wants one for all or for none",
                code="HPC1716",
            )


def _some_whole(draft: Draft, name: str, group: NodeGroup) -> bool:
    """Whether a node has instances and whole GPUs."""
    if group.gpus is None or (_KEY, name) in {path[:2] for path in draft.invalid}:
        return False
    cut: dict[str, set[int]] = {}
    members = draft.inventory.groups.get(name, frozenset())
    for entry in group.mig:
        nodes = members if entry.nodes is None else unfold(entry.nodes) or ()
        for node in nodes:
            cut.setdefault(node, set()).update(gpus_cut(entry, group.gpus.count))
    return any(0 < len(gpus) < group.gpus.count for gpus in cut.values())


RULES = (
    groups_have_the_gpus_they_divide,
    mig_is_of_the_group,
    mig_layouts_do_not_overlap,
    mig_layouts_fit,
    gpus_are_divided_in_one_way,
)
