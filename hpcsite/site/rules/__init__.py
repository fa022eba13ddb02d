"""Rules across hosts and keys; each takes a `Draft` and yields the problems that it finds."""

from collections.abc import Callable, Iterator

from hpcsite.errors import Problem
from hpcsite.site.draft import Draft
from hpcsite.site.rules import (
    accounts,
    addresses,
    connection,
    general,
    groups,
    hosts,
    lab,
    network,
    racks,
    rdma,
    slurm,
    storage,
)

Rule = Callable[[Draft], Iterator[Problem]]

RULES: tuple[Rule, ...] = (
    *general.RULES,
    *groups.RULES,
    *hosts.RULES,
    *connection.RULES,
    *network.RULES,
    *addresses.RULES,
    *slurm.RULES,
    *accounts.RULES,
    *lab.RULES,
    *rdma.RULES,
    *storage.RULES,
    *racks.RULES,
)
