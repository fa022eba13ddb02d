"""Whether the ranks of a training job are on the nodes, GPUs and NUMA nodes that Slurm gave it."""

from collections.abc import Callable, Sequence
from itertools import groupby

from hpcsite.site.names import fold
from hpcsite.verify.cluster import names
from hpcsite.verify.parsers.training import Place, Training
from hpcsite.verify.results import Property, Variant
from hpcsite.verify.trainer import Plan


def place_faults(plan: Plan, said: Training) -> list[str]:
    """Say which ranks are not on the node, GPU or NUMA node that they should be on."""
    faults = []
    nodes = set(names(plan.targets))
    places = sorted(said.places.values(), key=lambda place: (place.host, place.local))
    if places and (silent := sorted(set(range(plan.world)) - set(said.places))):
        faults.append(f"ranks {ranks_of(silent)} never began")
    for host, here in groupby(places, key=lambda place: place.host):
        ranks = list(here)
        if host not in nodes:
            faults.append(f"ranks {ranks_of([p.rank for p in ranks])} ran on {host or 'no node'}")
            continue
        faults += [f"{host}: {why}" for why in _node_faults(plan, ranks)]
    if network := _slow_network(plan, places, said):
        faults.append(network)
    return faults


def _node_faults(plan: Plan, ranks: Sequence[Place]) -> list[str]:
    faults = []
    locals_ = [place.local for place in ranks]
    if locals_ != list(range(plan.ranks)) and len(locals_) >= plan.ranks:
        faults.append(f"has local ranks {ranks_of(locals_)}, not {plan.ranks}")
    if others := {p.name for p in ranks if p.name.partition(".")[0] != p.host}:
        faults.append(f"calls itself {', '.join(sorted(others))}")
    for place in ranks:
        if plan.gpus and (count := len(list(filter(None, place.visible.split(","))))) != plan.gpus:
            faults.append(
                f"rank {place.rank} sees {count} GPUs (CUDA_VISIBLE_DEVICES="
                f"{place.visible or 'not set'}), not the {plan.gpus} that it asked for"
            )
        if plan.cuda and place.device != "cuda":
            faults.append(f"rank {place.rank} computes on the {place.device}, not on a GPU")
        if place.gpu_numa >= 0 and place.cpu_numa and place.gpu_numa not in place.cpu_numa:
            faults.append(
                f"rank {place.rank} has CPUs of NUMA node {ranks_of(place.cpu_numa)}, its GPU "
                f"{place.gpu} is at {place.gpu_numa}"
            )
    gpus = [place.gpu for place in ranks if place.gpu]
    if twice := sorted({gpu for gpu in gpus if gpus.count(gpu) > 1}):
        faults.append(f"several ranks compute on GPU {', '.join(twice)}")
    return faults


def _slow_network(plan: Plan, places: Sequence[Place], said: Training) -> str:
    """Say that NCCL goes over sockets although there are RDMA devices that are up."""
    with_nics = [place.host for place in places if place.nics]
    if plan.cuda and len(plan.targets) > 1 and with_nics and "Socket" in said.networks:
        return f"NCCL uses sockets, though {fold(set(with_nics))} has RDMA devices that are up"
    return ""


def properties(said: Training) -> list[Property]:
    """Return what the ranks have by which they could differ, folded by node."""
    shown: dict[str, Callable[[Place], str]] = {
        "torch": lambda place: place.torch,
        "device": lambda place: place.device,
        "interface": lambda place: place.interface,
        "nearest NIC": lambda place: place.nics[0] if place.nics else "",
    }
    found = []
    for name, value in shown.items():
        nodes: dict[str, set[str]] = {}
        for place in said.places.values():
            if text := value(place):
                nodes.setdefault(text, set()).add(place.host)
        # Which NIC is nearest differs between the GPUs of a node by design.
        if nodes and not (name == "nearest NIC" and len(nodes) > 1):
            ordered = sorted(nodes.items(), key=lambda item: -len(item[1]))
            variants = tuple(Variant(value=text, nodes=fold(of)) for text, of in ordered)
            found.append(Property(name=name, variants=variants))
    return found


def ranks_of(numbers: Sequence[int]) -> str:
    """Write ranks for a person."""
    return ",".join(map(str, numbers))
