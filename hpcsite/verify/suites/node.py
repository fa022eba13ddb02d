"""Suite `node`: every node is there, is what its group declares, and is like its peers."""

from collections.abc import Mapping

from hpcsite.verify import survey
from hpcsite.verify.cluster import names
from hpcsite.verify.context import Context
from hpcsite.verify.engine import Check
from hpcsite.verify.findings import Finding, Tally
from hpcsite.verify.parsers.facts import Facts
from hpcsite.verify.results import Status
from hpcsite.verify.spread import spread
from hpcsite.verify.suites import needs, node_hardware, node_uniform
from hpcsite.verify.suites.clocks import CLOCKS
from hpcsite.verify.suites.needs import light_on_all
from hpcsite.verify.survey import Survey


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
    *node_hardware.CHECKS,
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
