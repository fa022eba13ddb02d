"""Hardware profiles of node groups: there, and not contradicted by what a group says itself."""

import difflib
from collections.abc import Iterator

from hpcsite.errors import Problem
from hpcsite.site.catalogue import NodeProfile, gpu_gres, slurm_hardware
from hpcsite.site.draft import Draft
from hpcsite.site.hardware import gpus_of, hardware_of
from hpcsite.site.model import NodeGroup

_KEY = "site_node_groups"


def broken_fields(draft: Draft) -> frozenset[tuple[str, str]]:
    """List the fields of node groups that have a mistake in them, as pairs of group and field."""
    return frozenset(
        (str(path[1]), str(path[2])) for path in draft.invalid if path[0] == _KEY and len(path) > 2
    )


def virtual_groups_declare_hardware(draft: Draft) -> Iterator[Problem]:
    """Slurm can schedule by the declaration only where there is one."""
    broken = broken_fields(draft)
    for name, group in draft.keys.node_groups.items():
        unknown = {(name, "hardware"), (name, "hardware_profile")} & broken
        # A profile that is not there has a rule.
        wrong = group.hardware_profile and group.hardware_profile not in draft.catalogue.nodes
        if group.virtual and group.hardware is None and not unknown and not wrong:
            yield draft.problem(
                f"the node group {name} is virtual, but has no hardware",
                (_KEY, name, "virtual"),
                "declare `hardware:`, or remove `virtual` to use what each node has",
                code="HPC1701",
            )


def profiles_are_there(draft: Draft) -> Iterator[Problem]:
    """Check that the catalogue has each profile."""
    known = draft.catalogue.nodes
    for name, group in draft.declared.items():
        wanted = group.hardware_profile
        if wanted is not None and wanted not in known:
            yield draft.problem(
                f"there is no hardware profile {wanted}",
                (_KEY, name, "hardware_profile"),
                _nearest_profile(wanted, list(known)),
                code="HPC1702",
            )


def _nearest_profile(wanted: str, known: list[str]) -> str:
    """Name the profile that was probably meant; names may differ in a digit only."""
    close = difflib.get_close_matches(wanted, known, n=1)
    if close:
        return f"did you mean {close[0]}?"
    return (
        "docs/catalogue.md lists all; describe a machine of your own in a file of the folder "
        "hardware/ in the inventory"
    )


def profiles_are_not_contradicted(draft: Draft) -> Iterator[Problem]:
    """Check that what a group says itself can be true of its profile."""
    broken = broken_fields(draft)
    for name, group in draft.declared.items():
        profile = draft.catalogue.nodes.get(group.hardware_profile or "")
        if profile is None:
            continue
        yield from _beyond(draft, name, profile)
        if (name, "gpus") not in broken:
            yield from _gpus(draft, name, group, profile)
        if (name, "hardware") not in broken:
            yield from _hardware(draft, name, group, profile)


def _beyond(draft: Draft, name: str, profile: NodeProfile) -> Iterator[Problem]:
    """Find figures of a profile, of a site's own, that no node group could declare."""
    bare = NodeGroup(hardware_profile=profile.name)
    sockets, cores, _, memory = slurm_hardware(profile)
    said = [
        what
        for what, is_said, given in (
            ("its GPUs", gpu_gres(profile), gpus_of(bare, draft.catalogue)),
            (
                "its CPUs and memory",
                None not in (sockets, cores, memory),
                hardware_of(bare, draft.catalogue),
            ),
        )
        if is_said and given is None
    ]
    for what in said:
        yield draft.problem(
            f"the hardware profile {profile.name} has figures of {what} that no node can have",
            (_KEY, name, "hardware_profile"),
            "correct them in the site's own hardware file",
            code="HPC1707",
        )


def _gpus(draft: Draft, name: str, group: NodeGroup, profile: NodeProfile) -> Iterator[Problem]:
    path = (_KEY, name, "gpus")
    own = group.gpus
    if own is None or profile.gpu_count is None:
        return
    count = profile.gpu_count.value
    if own.count != count:
        yield draft.problem(
            f"the nodes of {name} have {own.count} GPUs by `gpus`, and {count} by their profile "
            f"{profile.name}",
            (*path, "count"),
            "remove `gpus`, or name a profile with as many; docs/catalogue.md says how to make one",
            code="HPC1703",
        )
    gres = gpu_gres(profile)
    if own.type and gres and gres.type and own.type != gres.type:
        yield draft.problem(
            f"the GPUs of {name} are {own.type} by `gpus`, and {gres.type} by the profile "
            f"{profile.name}",
            (*path, "type"),
            "remove `type`, or name a profile with these GPUs",
            code="HPC1704",
        )


def _hardware(draft: Draft, name: str, group: NodeGroup, profile: NodeProfile) -> Iterator[Problem]:
    own = group.hardware
    if own is None:
        return
    path = (_KEY, name, "hardware")
    sockets, cores, _, memory = slurm_hardware(profile)
    if memory is not None and own.memory_mib > memory:
        yield draft.problem(
            f"the nodes of {name} have {own.memory_mib} MiB of memory by `hardware`, and no more "
            f"than {memory} MiB by their profile {profile.name}",
            (*path, "memory_mib"),
            "lower memory_mib, or correct the profile in the site's own hardware files",
            code="HPC1705",
        )
    if sockets is None or cores is None:
        return
    mine, theirs = own.sockets * own.cores_per_socket, sockets * cores
    said = f"the nodes of {name} have {mine} cores by `hardware`, and {theirs} by their profile"
    if mine > theirs:
        yield draft.problem(
            f"{said} {profile.name}",
            (*path, "cores_per_socket"),
            "correct `hardware`, or the profile in the site's own hardware files",
            code="HPC1705",
        )
    elif mine < theirs:
        yield draft.problem(
            f"{said} {profile.name}: jobs cannot use the rest",
            (*path, "cores_per_socket"),
            "remove `hardware`, or acknowledge it if the firmware turns cores off",
            code="HPC1706",
        )


RULES = (virtual_groups_declare_hardware, profiles_are_there, profiles_are_not_contradicted)
