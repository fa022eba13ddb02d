"""Suite `smoke`: in a few seconds, does the cluster take a job at all? Run after a deploy.

A site in use has nodes that somebody drained, and may be full; neither is a deploy's fault, and
neither may keep a timer or a pipeline from deploying. So these checks name such nodes, and only
what nobody asked for is a FAIL. The suite `node` is strict.
"""

from hpcsite.verify.context import Context
from hpcsite.verify.engine import Check
from hpcsite.verify.findings import Finding, Tally
from hpcsite.verify.suites import needs
from hpcsite.verify.suites.accounting import find_success, light_on_chosen, with_room


def find_nodes(context: Context) -> Finding:
    """Nodes that are down, silent or drained by a deploy; those that others set aside are named."""
    cluster = context.cluster
    if context.core.start:
        context.evidence.add(context.core.start)
    aside = [node for node in cluster.declared if cluster.set_aside(node)]
    tally = Tally(wrong=list(cluster.reasons(n for n in cluster.declared if n not in aside)))
    return tally.finding(cluster.declared, reason="; ".join(cluster.reasons(aside)))


def a_node_with_room(context: Context) -> str:
    """Say that others use, or have set aside, every node that works; nothing if one has room."""
    cluster = context.cluster
    if with_room(cluster):
        return ""
    if cluster.targets:
        return "others use every node that takes jobs"
    if all(cluster.set_aside(node) for node in cluster.declared):
        return "no node takes jobs: " + "; ".join(cluster.blocked)
    return ""


CHECKS = (
    Check(
        "smoke",
        "nodes",
        "Every compute node that takes jobs answers; none is down, or drained by a deploy.",
        find_nodes,
        (needs.compute_nodes(1),),
    ),
    Check(
        "smoke",
        "job",
        "A job runs on a node, with a GPU where it has one, and is in accounting.",
        find_success,
        (needs.compute_nodes(1), needs.accounting, a_node_with_room),
        light_on_chosen,
    ),
)
