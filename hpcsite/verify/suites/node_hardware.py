"""Checks `node/hardware` and `node/pcie`: each node has what its group and profile promise."""

from collections.abc import Iterable, Mapping

from hpcsite.site.catalogue.models import NodeProfile, Whole
from hpcsite.site.hardware import profile_of
from hpcsite.site.model import NodeGroup
from hpcsite.slurm.hardware import configured_memory
from hpcsite.slurm.node_records import SlurmNode
from hpcsite.verify import survey
from hpcsite.verify.context import Context
from hpcsite.verify.engine import Check
from hpcsite.verify.findings import Finding, Tally
from hpcsite.verify.judge.outliers import outliers
from hpcsite.verify.parsers.facts import Facts
from hpcsite.verify.parsers.pcie import GPU, KINDS, PcieDevice
from hpcsite.verify.results import Certainty, Culprit, CulpritKind, Direction, Property, Status
from hpcsite.verify.suites import needs
from hpcsite.verify.uniform import Uniformity, blamed, judge

_KIB_PER_MIB = 1024
# Nodes that are built alike differ by what a kernel keeps for itself, a DIMM is more than this.
_MEMORY_FLOOR = 0.01
_HARDWARE_REMEDY = "look at {nodes}: its firmware's event log, `lspci`, DIMMs and GPUs, reseat them"
_PCIE_REMEDY = "reseat the card or drive of {nodes} that is named, else try it in another slot"


def find_hardware(context: Context) -> Finding:
    """Each compute node has in Slurm and by itself what its group declares."""
    cluster, found = context.cluster, survey.survey(context)
    tally = Tally()
    wrong: dict[str, list[str]] = {}
    for node in cluster.declared:
        known, facts = cluster.nodes.get(node), found.facts.get(node)
        if known is None or facts is None:
            tally.unknown.append(found.silent(node))
            continue
        group_name, group = cluster.group_of(node)
        own = own_faults(known, group, facts)
        faults = [*slurm_faults(known, group), *own]
        declared = f"group {group_name} declares " if group_name else "Slurm has "
        tally.wrong += [f"{node}: {declared}{fault}" for fault in faults]
        profile = profile_of(group, context.site.catalogue)
        promised = profile_faults(profile, facts) if profile and not group.virtual else []
        tally.wrong += [f"{node}: profile {group.hardware_profile}: {fault}" for fault in promised]
        if own or promised:
            wrong[node] = [*own, *promised]
    for node, why in less_memory(context, found.facts).items():
        tally.wrong.append(f"{node}: {why}")
        wrong.setdefault(node, []).append(why)
    culprits = broken(wrong)
    named = ",".join(culprit.name for culprit in culprits)
    remedy = _HARDWARE_REMEDY.format(nodes=named) if culprits else ""
    return tally.finding(cluster.declared, culprits=culprits, remedy=remedy)


def broken(faults: Mapping[str, Iterable[str]]) -> tuple[Culprit, ...]:
    """Name nodes that themselves have less than promised."""
    return tuple(
        Culprit(
            kind=CulpritKind.NODE,
            name=node,
            nodes=node,
            certainty=Certainty.CERTAIN,
            because="; ".join(why),
        )
        for node, why in faults.items()
    )


def slurm_faults(known: SlurmNode, group: NodeGroup) -> list[str]:
    """Where Slurm's idea of a node differs from its group's declaration."""
    faults = []
    if hardware := group.hardware:
        if known.cpus != hardware.cpus:
            faults.append(f"{hardware.cpus} CPUs, Slurm has {known.cpus}")
        least = configured_memory(hardware.memory_mib, group.memory_margin_percent)
        if not least <= known.memory_mib <= hardware.memory_mib:
            faults.append(
                f"{hardware.memory_mib} MiB of memory, {least} MiB with its margin, "
                f"Slurm has {known.memory_mib} MiB"
            )
    gpus = group.gpus.count if group.gpus else 0
    if known.gres.get("gpu", 0) != gpus:
        faults.append(f"{gpus} GPUs, Slurm has {known.gres.get('gpu', 0)}")
    return faults


def own_faults(known: SlurmNode, group: NodeGroup, facts: Facts) -> list[str]:
    """Where a node has less than Slurm was told; of a virtual one only its devices count."""
    faults = []
    if group.gpus and len(facts.devices) != group.gpus.count:
        faults.append(f"{group.gpus.count} GPUs, {group.gpus.device}* has {len(facts.devices)}")
    if group.virtual:
        return faults
    cpus, memory_mib = facts.number("cpus"), facts.number("memory_kib") // _KIB_PER_MIB
    if cpus < known.cpus:
        faults.append(f"{known.cpus} CPUs, the node itself has {cpus}")
    if memory_mib < known.memory_mib:
        faults.append(f"{known.memory_mib} MiB of memory, the node itself has {memory_mib} MiB")
    return faults


def profile_faults(profile: NodeProfile, facts: Facts) -> list[str]:
    """Where a node has less than its profile has. What the profile does not say is not held."""
    faults = []

    def hold(what: str, promised: Whole | None, has: int) -> None:
        if promised is not None and has < promised.value:
            faults.append(f"{promised.value} {what}, the node has {has}")

    hold("sockets", profile.sockets, facts.number("sockets"))
    if profile.sockets and profile.cores_per_socket:
        cores = profile.sockets.value * profile.cores_per_socket.value
        if facts.number("cores") < cores:
            faults.append(f"{cores} cores, the node has {facts.number('cores')}")
        threads = profile.threads_per_core
        if threads and facts.number("cpus") < cores * threads.value:
            faults.append(f"{threads.value} threads a core, the node has {facts.number('cpus')}")
    hold("NVMe drives", profile.nvme.count, sum(facts.parts.get("nvme", {}).values()))
    # Nodes outside of the group rdma have adapters whose RDMA devices nobody made.
    if adapters := sum(facts.parts.get("hca", {}).values()):
        least = sum(each.count.value for each in profile.nics or () if each.count)
        if adapters < least:
            faults.append(f"{least} ports of adapters, the node has {adapters}")
    return faults + _gpu_link_faults(profile, facts.pcie)


def _gpu_link_faults(profile: NodeProfile, devices: Iterable[PcieDevice]) -> list[str]:
    """Where a GPU's slot is less than its profile's link: what it can, not what it runs at."""
    link = profile.gpu.pcie if profile.gpu else None
    faults = []
    for device in devices:
        if device.kind != GPU or link is None:
            continue
        if link.lanes and device.width_best < link.lanes.value:
            faults.append(f"{device} can have x{device.width_best}, x{link.lanes.value} promised")
        if link.generation and device.generation_best < link.generation.value:
            faults.append(
                f"{device} can have PCIe {device.generation_best}, "
                f"PCIe {link.generation.value} promised"
            )
    return faults


def less_memory(context: Context, facts: Mapping[str, Facts]) -> dict[str, str]:
    """Nodes with less memory than most of their group, as where a DIMM is not seen."""
    by_group: dict[str, dict[str, float]] = {}
    for node in context.cluster.declared:
        group_name, group = context.cluster.group_of(node)
        memory = facts[node].number("memory_kib") if node in facts else 0
        if memory and not group.virtual:
            by_group.setdefault(group_name, {})[node] = memory / _KIB_PER_MIB
    said = {}
    for values in by_group.values():
        for node in outliers(values, Direction.HIGHER, floor=_MEMORY_FLOOR):
            said[node] = f"{values[node]:.0f} MiB of memory, its peers have more"
    return said


def find_pcie(context: Context) -> Finding:
    """Each GPU, adapter and drive runs at the width that it and its slot can have."""
    cluster, found = context.cluster, survey.survey(context)
    real = [node for node in cluster.declared if not cluster.group_of(node)[1].virtual]
    tally = Tally(unknown=[found.silent(node) for node in real if node not in found.facts])
    devices = {node: found.facts[node].pcie for node in real if node in found.facts}
    wrong = {node: why for node, mine in devices.items() if (why := link_faults(mine))}
    tally.wrong += [f"{node}: {fault}" for node, why in wrong.items() for fault in why]
    alike = Uniformity()
    for label, nodes in _groups(context, devices):
        for kind in KINDS:
            name = f"PCIe of {kind}" + (f" ({label})" if label else "")
            alike.add(name, judge(name, {node: _links(devices[node], kind) for node in nodes}))
    tally.wrong += alike.said
    if not any(devices.values()) and not tally.unknown:
        if not cluster.gpu_declared:
            return Finding(
                Status.SKIP, "no node shows a GPU, adapter or drive on PCIe", tuple(real)
            )
        tally.unknown.append("no node tells the PCIe link of a GPU, adapter or drive")
    culprits = _joined(broken(wrong), blamed(alike.odd))
    named = ",".join(culprit.name for culprit in culprits)
    return tally.finding(
        real,
        properties=_properties(alike),
        culprits=culprits,
        remedy=_PCIE_REMEDY.format(nodes=named) if culprits else "",
    )


def link_faults(devices: Iterable[PcieDevice]) -> list[str]:
    """Say which devices run narrower or slower than both ends can.

    An idle GPU lowers its speed to save power, so a GPU's speed is not judged here.
    """
    faults = []
    for device in devices:
        if device.width < device.width_best:
            faults.append(
                f"{device} runs at x{device.width}, it and its slot can have x{device.width_best}"
            )
        if device.kind != GPU and device.generation < device.generation_best:
            faults.append(
                f"{device} runs at PCIe {device.generation}, it and its slot can have "
                f"PCIe {device.generation_best}"
            )
    return faults


def _links(devices: Iterable[PcieDevice], kind: str) -> str:
    count: dict[str, int] = {}
    for device in devices:
        if device.kind == kind:
            count[device.link] = count.get(device.link, 0) + 1
    return ", ".join(f"{number}x {link}" for link, number in sorted(count.items()))


def _groups(context: Context, nodes: Iterable[str]) -> list[tuple[str, list[str]]]:
    by_group: dict[str, list[str]] = {}
    for node in nodes:
        by_group.setdefault(context.cluster.group_of(node)[0], []).append(node)
    return [(name if len(by_group) > 1 else "", mine) for name, mine in by_group.items()]


def _joined(first: tuple[Culprit, ...], second: tuple[Culprit, ...]) -> tuple[Culprit, ...]:
    named = {culprit.name for culprit in first}
    return first + tuple(culprit for culprit in second if culprit.name not in named)


def _properties(alike: Uniformity) -> tuple[Property, ...]:
    return tuple(alike.properties)


CHECKS = (
    Check(
        "node",
        "hardware",
        "Every compute node has the CPUs, memory and GPUs that its group and profile promise.",
        find_hardware,
        (needs.compute_nodes(1),),
        needs.light_on_all,
    ),
    Check(
        "node",
        "pcie",
        "Every GPU, adapter and drive runs at the PCIe width that it and its slot can have.",
        find_pcie,
        (needs.compute_nodes(1), needs.real_nodes),
        needs.light_on_all,
    ),
)
