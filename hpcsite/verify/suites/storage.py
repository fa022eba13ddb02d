"""Suite `storage`: the shared folders that the site declares, as users have them."""

from hpcsite.verify.claims import Claim, Mode
from hpcsite.verify.context import Context
from hpcsite.verify.engine import Check
from hpcsite.verify.suites import needs
from hpcsite.verify.suites.storage_coherence import find_coherence, find_locks
from hpcsite.verify.suites.storage_files import find_many_files
from hpcsite.verify.suites.storage_load import find_throughput
from hpcsite.verify.suites.storage_metadata import find_metadata
from hpcsite.verify.suites.storage_mounts import (
    crew_of,
    exports,
    find_mounts,
    writable_exports,
)
from hpcsite.verify.suites.storage_scratch import find_scratch
from hpcsite.verify.suites.storage_squash import find_root_squash


def _busy(context: Context) -> Claim:
    """Claim all hosts for one check at a time: they would wait for each other's jobs."""
    return Claim(frozenset(target.name for target in crew_of(context).targets), Mode.BUSY)


def _own_disks(context: Context) -> Claim:
    return Claim(frozenset(target.name for target in context.cluster.targets), Mode.BUSY)


def two_hosts(context: Context) -> str:
    """Need: two hosts that can look at each other's files."""
    site, here = context.site, context.core.host
    part = {"nfs_client", "nfs_server"}
    hosts = {host.name for host in site.in_group("slurm_compute") if host.groups & part}
    hosts |= {here.name} if here.groups & part else set()
    return "" if len(hosts) > 1 else "needs two hosts that share a folder, the site has one"


_ONE = (exports, needs.compute_nodes(1))
_WRITES = (*_ONE, writable_exports)
_TWO = (*_WRITES, two_hosts)
CHECKS = (
    Check(
        "storage",
        "mounts",
        "Every node has every shared folder, from its server, alive, and writable if declared.",
        find_mounts,
        _ONE,
        _busy,
    ),
    Check(
        "storage",
        "coherence",
        "What one host wrote and closed, others see when they open it.",
        find_coherence,
        _TWO,
        _busy,
    ),
    Check(
        "storage",
        "locks",
        "A lock on a shared file keeps other hosts out until it is released.",
        find_locks,
        _TWO,
        _busy,
    ),
    Check(
        "storage",
        "root_squash",
        "Root of a node makes no file of root's on a folder that squashes root.",
        find_root_squash,
        _ONE,
        _busy,
    ),
    Check(
        "storage",
        "many_files",
        "Thousands of small files that one host makes are all there on others.",
        find_many_files,
        _TWO,
        _busy,
    ),
    Check(
        "storage",
        "throughput",
        "fio writes and reads shared folders, sequentially and at random.",
        find_throughput,
        _WRITES,
        _busy,
    ),
    Check(
        "storage",
        "metadata",
        "fio creates, stats and deletes files on shared folders.",
        find_metadata,
        _WRITES,
        _busy,
    ),
    Check(
        "storage",
        "scratch",
        "Each node's own disk is there, and as fast as those of its peers.",
        find_scratch,
        (needs.compute_nodes(1),),
        _own_disks,
    ),
)
