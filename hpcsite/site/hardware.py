"""What the nodes of a group have: by its own word, else by its hardware profile. Pure.

`with_profiles` is applied once, where an inventory is read: by `load_site`, and by the filters that
Ansible's roles use. Whoever is given a `NodeGroup` after that finds `hardware` and `gpus` in it and
need not know of profiles.

GRES are declared here rather than detected, so their types are ours: a GPU has the type that the
group or the catalogue gives it, a MIG instance that of its profile (`1g.10gb`), and not the longer
name that `AutoDetect=nvml` makes of both (`nvidia_h100_80gb_hbm3_1g.10gb`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from hpcsite.site.catalogue import Catalogue, NodeProfile, gpu_gres, slurm_hardware
from hpcsite.site.model import Gpus, Hardware, Mig, NodeGroup
from hpcsite.site.names import unfold

_RANGE = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)
_INSTANCE = re.compile(r"\d+g\.\d+gb", re.ASCII)
_MANY_DIGITS = 10
_SHARED = ("shard", "mps")


@dataclass(frozen=True)
class NodeGres:
    """One GRES of a node, as its line has it, and the GPUs that it is made of."""

    name: str
    count: int
    type: str = ""
    gpus: tuple[int, ...] = ()

    def __str__(self) -> str:
        return ":".join(filter(None, (self.name, self.type, str(self.count))))


def profile_of(group: NodeGroup, catalogue: Catalogue) -> NodeProfile | None:
    """Find the profile that a group names; None where it names none, or an unknown one."""
    return catalogue.nodes.get(group.hardware_profile) if group.hardware_profile else None


def hardware_of(group: NodeGroup, catalogue: Catalogue) -> Hardware | None:
    """Give what is declared of CPUs and memory; None where it is to be measured.

    A profile counts only where it knows sockets, cores and memory: a part of it would make Slurm
    believe in a machine that is half measured and half declared. Nor does one of a site's own that
    is beyond what a node group may declare, which has a rule.
    """
    profile = profile_of(group, catalogue)
    if group.hardware is not None or profile is None:
        return group.hardware
    sockets, cores, threads, memory = slurm_hardware(profile)
    if sockets is None or cores is None or memory is None:
        return None
    try:
        return Hardware(
            sockets=sockets,
            cores_per_socket=cores,
            threads_per_core=1 if threads is None else threads,
            memory_mib=memory,
        )
    except ValidationError:
        return None


def gpus_of(group: NodeGroup, catalogue: Catalogue) -> Gpus | None:
    """Give the GPUs of a group's nodes; a type that the group leaves out is the profile's."""
    profile = profile_of(group, catalogue)
    gres = gpu_gres(profile) if profile else None
    if gres is None:
        return group.gpus
    if group.gpus is None:
        try:
            return Gpus(count=gres.count, type=gres.type)
        except ValidationError:
            return None
    return group.gpus.model_copy(update={"type": group.gpus.type or gres.type})


def with_profiles(groups: Mapping[str, NodeGroup], catalogue: Catalogue) -> dict[str, NodeGroup]:
    """Fill in what the groups' profiles say; a group without one stays as it is."""
    return {
        name: group.model_copy(
            update={
                "hardware": hardware_of(group, catalogue),
                "gpus": gpus_of(group, catalogue),
            }
        )
        if profile_of(group, catalogue)
        else group
        for name, group in groups.items()
    }


def mig_layouts(group: NodeGroup, node: str | None = None) -> dict[int, dict[str, int]]:
    """Give the MIG profiles that each GPU of a node is cut into, by the GPU's number.

    Without a node: of nodes that no entry names. GPUs that are not cut are left out, and so are
    those that the node does not have.
    """
    count = group.gpus.count if group.gpus else 0
    layouts: dict[int, dict[str, int]] = {}
    for entry in group.mig:
        if entry.nodes is None or (node is not None and node in (unfold(entry.nodes) or ())):
            for gpu in gpus_cut(entry, count):
                layouts.setdefault(gpu, dict(entry.profiles))
    return dict(sorted(layouts.items()))


def gpus_cut(entry: Mig, count: int) -> tuple[int, ...]:
    """List the GPUs that an entry is about, of so many as a node has."""
    if entry.gpus is None:
        return tuple(range(count))
    numbers = {
        number
        for first, last in gpu_ranges(entry.gpus)
        for number in range(first, min(last + 1, count))
    }
    return tuple(sorted(numbers))


def gpu_ranges(text: str) -> list[tuple[int, int]]:
    """Read numbers of GPUs, "0-3,6", as pairs of a first and a last."""
    return [(_number(found[1]), _number(found[2] or found[1])) for found in _RANGE.finditer(text)]


def _number(digits: str) -> int:
    """Read a number; of more digits than Python reads at once, one that no GPU has."""
    return int(digits) if len(digits) < _MANY_DIGITS else 10**_MANY_DIGITS


def mig_gres_type(profile: str) -> str:
    """Name the GRES type of a MIG profile: `1g.10gb`, and so of `1g.10gb+me`.

    slurmd names instances by slices and memory alone.
    """
    found = _INSTANCE.search(profile)
    return found[0] if found else profile


def gres_of(group: NodeGroup, node: str | None = None) -> tuple[NodeGres, ...]:
    """Give the GRES of a node of a group that has its profile filled in.

    First the whole GPUs, then MIG instances by type, then shards and MPS, which are of nodes
    without instances only. Without a node: of one that no entry of `mig` names.
    """
    if group.gpus is None:
        return ()
    layouts = mig_layouts(group, node)
    whole = tuple(gpu for gpu in range(group.gpus.count) if gpu not in layouts)
    found = [NodeGres("gpu", len(whole), group.gpus.type or "", whole)] if whole else []
    instances: dict[str, int] = {}
    on: dict[str, dict[int, None]] = {}
    for gpu, layout in layouts.items():
        for profile, count in layout.items():
            kind = mig_gres_type(profile)
            instances[kind] = instances.get(kind, 0) + count
            on.setdefault(kind, {})[gpu] = None
    found += [NodeGres("gpu", number, kind, tuple(on[kind])) for kind, number in instances.items()]
    for name, number in zip(_SHARED, (group.shards, group.mps), strict=True):
        if number and not layouts:
            found.append(NodeGres(name, number, gpus=whole))
    return tuple(found)
