"""Suite `smoke`: in a few seconds, does the cluster take a job at all? Run after a deploy."""

from hpcsite.verify.engine import Check
from hpcsite.verify.suites import needs
from hpcsite.verify.suites.accounting import find_success, light_on_chosen
from hpcsite.verify.suites.node import find_state

CHECKS = (
    Check(
        "smoke",
        "nodes",
        "No compute node is down or drained.",
        find_state,
        (needs.compute_nodes(1),),
    ),
    Check(
        "smoke",
        "job",
        "A job runs on the first node, with a GPU where it has one, and is in accounting.",
        find_success,
        (needs.compute_nodes(1), needs.accounting),
        light_on_chosen,
    ),
)
