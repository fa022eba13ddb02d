"""Suite `node`: every node is there, is what its group declares, and is like its peers."""

from collections.abc import Mapping

from hpcsite.site.model import NodeGroup
from hpcsite.slurm.hardware import configured_memory
from hpcsite.slurm.node_records import SlurmNode
from hpcsite.verify import survey
from hpcsite.verify.cluster import names
from hpcsite.verify.context import Context
from hpcsite.verify.engine import Check
from hpcsite.verify.findings import Finding, Tally
from hpcsite.verify.parsers.facts import Facts
from hpcsite.verify.results import Status
from hpcsite.verify.spread import spread
from hpcsite.verify.suites import needs, node_uniform
from hpcsite.verify.suites.clocks import CLOCKS
from hpcsite.verify.suites.needs import light_on_all
from hpcsite.verify.survey import Survey

_KIB_PER_MIB = 1024


def find_state(context: Context) -> Finding:
    """Slurm's state of each compute node of the inventory, and whether its slurmd answers."""
    cluster = context.cluster
    if context.core.start:
        context.evidence.add(context.core.start)
    tally = Tally(wrong=list(cluster.blocked))
    return tally.finding(cluster.declared)


def find_answers(context: Context) -> Finding:
    """Each node runs a job and has its NodeName as its host name; other hosts answer by ssh."""
    found = survey.survey(context)
    tally = Tally([*found.failed.values(), *wrong_names(found.facts)], list(found.unknown.values()))
    return tally.finding([*found.facts, *found.failed, *found.unknown])


def wrong_names(facts: dict[str, Facts]) -> list[str]:
    """Hosts whose own name differs from the inventory's."""
    return [
        f"{name} calls itself {known.values.get('hostname', 'nothing')}"
        for name, known in facts.items()
        if known.values.get("hostname") != name
    ]


def find_hardware(context: Context) -> Finding:
    """Each compute node has in Slurm and by itself what its group declares."""
    cluster, found = context.cluster, survey.survey(context)
    tally = Tally()
    for node in cluster.declared:
        known, facts = cluster.nodes.get(node), found.facts.get(node)
        if known is None or facts is None:
            tally.unknown.append(found.silent(node))
            continue
        group_name, group = cluster.group_of(node)
        faults = [*slurm_faults(known, group, facts), *own_faults(known, group, facts)]
        declared = f"group {group_name} declares " if group_name else "Slurm has "
        tally.wrong += [f"{node}: {declared}{fault}" for fault in faults]
    return tally.finding(cluster.declared)


def slurm_faults(known: SlurmNode, group: NodeGroup, facts: Facts) -> list[str]:
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
    if group.gpus and len(facts.devices) != gpus:
        faults.append(f"{gpus} GPUs, {group.gpus.device}* has {len(facts.devices)}")
    return faults


def own_faults(known: SlurmNode, group: NodeGroup, facts: Facts) -> list[str]:
    """Where a node has less than Slurm was told; virtual nodes have what they have."""
    if group.virtual:
        return []
    faults = []
    cpus, memory_mib = facts.number("cpus"), facts.number("memory_kib") // _KIB_PER_MIB
    if cpus < known.cpus:
        faults.append(f"{known.cpus} CPUs, the node itself has {cpus}")
    if memory_mib < known.memory_mib:
        faults.append(f"{known.memory_mib} MiB of memory, the node itself has {memory_mib} MiB")
    return faults


def find_cuda(context: Context) -> Finding:
    """nvidia-smi lists a GPU in a job that has one, on every node that should have one."""
    found, cluster = survey.survey(context), context.cluster
    if result := without_driver(found, cluster.gpu_declared):
        return result
    tally = Tally()
    for node in cluster.gpu_declared:
        if node not in found.facts:
            tally.unknown.append(found.silent(node))
        elif "nvidia_smi" not in found.facts[node].values:
            tally.wrong.append(f"{node} has no nvidia-smi")
    asked = [t for t in cluster.gpu_targets if "nvidia_smi" in _values(found, t.name)]
    argv = ["nvidia-smi", "-L"]
    answers = spread(context, asked, argv, "--gres=gpu:1", name="nvidia-smi") if asked else {}
    for node, answer in answers.items():
        if answer.not_started:
            tally.unknown.append(answer.not_started)
        elif answer.rc or "GPU " not in answer.stdout:
            said = answer.stdout.strip() or answer.complaint
            tally.wrong.append(f"nvidia-smi fails on {node}: {said.splitlines()[0]}")
    return tally.finding(names(cluster.gpu_targets))


def without_driver(found: Survey, nodes: tuple[str, ...]) -> Finding | None:
    """SKIP where no node has a driver or its tool, ERROR where that is not known of all."""
    if any({"driver", "nvidia_smi"} & _values(found, node).keys() for node in nodes):
        return None
    if missing := [found.silent(node) for node in nodes if node not in found.facts]:
        return Finding(Status.ERROR, "; ".join(dict.fromkeys(missing)), nodes)
    return Finding(Status.SKIP, "no CUDA device", nodes)


def _values(found: Survey, node: str) -> Mapping[str, str]:
    return found.facts[node].values if node in found.facts else {}


ANY = (needs.compute_nodes(1),)
STATE = Check(
    "node",
    "state",
    "Slurm calls no compute node down or drained, and each one's slurmd answers.",
    find_state,
    ANY,
)
CHECKS = (
    STATE,
    Check(
        "node",
        "answers",
        "Every node runs a job and is called what Slurm calls it; every other host answers.",
        find_answers,
        ANY,
        light_on_all,
    ),
    Check(
        "node",
        "hardware",
        "Every compute node has the CPUs, memory and GPUs that its group declares.",
        find_hardware,
        ANY,
        light_on_all,
    ),
    *node_uniform.CHECKS,
    CLOCKS,
    Check(
        "node",
        "cuda",
        "The NVIDIA driver works in a job on every node with GPUs.",
        find_cuda,
        (*ANY, needs.gpus),
        light_on_all,
    ),
)
