"""Which QOS must stand in slurmdbd before slurmctld reads its partitions. Pure.

slurmctld ends over a partition's QOS that slurmdbd does not know, and takes one of AllowQos out of
the list until it reads its files again. What a QOS allows is kept with the accounts, after
slurmctld has told slurmdbd of the TRES that limits name; until then it only exists.
"""

from collections.abc import Collection
from dataclasses import dataclass

from hpcsite.site.model import SiteKeys
from hpcsite.slurm.accounts_state import qos_key


@dataclass(frozen=True)
class NewQos:
    """A command of sacctmgr's, as the module `slurm_accounts` takes it."""

    text: str
    argv: tuple[str, ...]
    makes: tuple[str, ...]


def partition_qos(keys: SiteKeys) -> tuple[str, ...]:
    """Name the QOS of the site that its partitions name, each once."""
    declared = {qos.name for qos in keys.qos}
    named = (
        name
        for partition in keys.partitions
        for name in (partition.qos, *partition.allow_qos)
        if name in declared
    )
    return tuple(dict.fromkeys(name for name in named if name))


def new_partition_qos(keys: SiteKeys, standing: Collection[str]) -> list[NewQos]:
    """Make those that do not stand yet."""
    return [
        NewQos(
            text=f"QOS {name}: new, for a partition",
            argv=("sacctmgr", "--immediate", "add", "qos", f"name={name}"),
            makes=(qos_key(name),),
        )
        for name in partition_qos(keys)
        if name not in standing
    ]
