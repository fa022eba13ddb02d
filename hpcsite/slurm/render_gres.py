"""The text of gres.conf. Pure; the same input gives the same bytes."""

from collections.abc import Iterable, Iterator, Mapping

from hpcsite.site.model import NodeGroup
from hpcsite.slurm.cluster import Node
from hpcsite.slurm.conf import fold
from hpcsite.slurm.gres import Gres
from hpcsite.slurm.text import HEADER


def render_gres_conf(nodes: Iterable[Node], groups: Mapping[str, NodeGroup]) -> str:
    """gres.conf: the device files of each GPU node, and how the shares of its GPUs are called."""
    shared: dict[tuple[tuple[Gres, ...], str], list[str]] = {}
    for node in nodes:
        if gres := node.machine.gres:
            gpus = groups[node.group].gpus
            device = gpus.device if gpus else "/dev/nvidia"
            shared.setdefault((gres, device), []).append(node.name)
    return HEADER + "".join(
        f"NodeName={fold(names)} {entry}\n"
        for (gres, device), names in shared.items()
        for entry in _entries(gres, device)
    )


def _entries(gres: tuple[Gres, ...], device: str) -> Iterator[str]:
    if any(each.is_instance for each in gres):
        # The device files of an instance are numbered by the driver when it is made, so nobody
        # knows them before, and Slurm's own way is to ask NVML (gres.html, MIG Management).
        yield "AutoDetect=nvml"
    for each in gres:
        if each.name != "gpu":
            # Without a file Slurm spreads them evenly over the GPUs (gres.html, Sharding).
            yield f"Name={each.name} Count={each.count}"
        elif not any(other.is_instance for other in gres):
            files = f"{device}[0-{each.count - 1}]" if each.count > 1 else f"{device}0"
            yield f"Name=gpu{f' Type={each.type}' if each.type else ''} File={files}"
