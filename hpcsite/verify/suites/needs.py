"""What checks need. A need answers why it is not met, or nothing; then the check is a SKIP.

Needs ask what the site declares, never what happens to be up: a node that is down is an error of
the check that misses it, not a reason to skip it.
"""

from collections.abc import Callable

from hpcsite.site.rdma import rdma_of
from hpcsite.verify.claims import Claim, Mode
from hpcsite.verify.context import Context


def compute_nodes(least: int) -> Callable[[Context], str]:
    """At least so many compute nodes."""

    def need(context: Context) -> str:
        count = len(context.cluster.declared)
        return "" if count >= least else f"needs {least} compute nodes, the site has {count}"

    return need


def gpus(context: Context) -> str:
    """Nodes with GPUs."""
    return "" if context.cluster.gpu_declared else "no node group of the site declares GPUs"


def real_nodes(context: Context) -> str:
    """Nodes with hardware of their own; a lab's machines share that of a computer."""
    cluster = context.cluster
    real = any(not cluster.group_of(node)[1].virtual for node in cluster.declared)
    return "" if real else "all node groups are virtual: their hardware is not their own"


def rdma_nodes(least: int) -> Callable[[Context], str]:
    """At least so many compute nodes that are to have RDMA."""

    def need(context: Context) -> str:
        hosts = context.site.in_group("slurm_compute")
        count = sum(rdma_of(host) is not None for host in hosts)
        if not count:
            return "no compute node is in the group rdma, or their rdma_mode is none"
        return "" if count >= least else f"needs {least} compute nodes with RDMA, there is {count}"

    return need


def accounting(context: Context) -> str:
    """Accounting, where the site has a host for it."""
    return "" if context.site.in_group("slurm_dbd") else "the site has no host in slurm_dbd"


def require_nodes(context: Context) -> None:
    """Raise `NotMeasuredError` if no compute node can be used at all, with nothing but the cause.

    So it reads as in the checks that name each node that is left out, and is shown once.
    """
    context.cluster.require_any()


def light_on_all(context: Context) -> Claim:
    """Claim a job of one CPU on every node."""
    return Claim(frozenset(context.cluster.declared), Mode.LIGHT)
