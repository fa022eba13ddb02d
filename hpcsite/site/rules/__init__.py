"""Rules across hosts and keys; each takes a `Draft` and yields the problems that it finds."""

from collections.abc import Callable, Iterator

from hpcsite.errors import Problem
from hpcsite.site.draft import Draft
from hpcsite.site.rules import (
    accounts,
    addresses,
    backup,
    cabling,
    connection,
    fabrics,
    general,
    gpus,
    groups,
    hardware,
    hosts,
    lab,
    nccl,
    network,
    partitions,
    qos,
    racks,
    rdma,
    secrets,
    slurm,
    slurm_keys,
    storage,
    topology,
    tres,
    versions,
)

Rule = Callable[[Draft], Iterator[Problem]]

RULES: tuple[Rule, ...] = (
    *general.RULES,
    *groups.RULES,
    *hosts.RULES,
    *connection.RULES,
    *network.RULES,
    *addresses.RULES,
    *fabrics.RULES,
    *topology.RULES,
    *cabling.RULES,
    *nccl.RULES,
    *secrets.RULES,
    *hardware.RULES,
    *gpus.RULES,
    *partitions.RULES,
    *slurm.RULES,
    *slurm_keys.RULES,
    *qos.RULES,
    *tres.RULES,
    *backup.RULES,
    *accounts.RULES,
    *lab.RULES,
    *rdma.RULES,
    *storage.RULES,
    *racks.RULES,
    *versions.RULES,
)
