"""Which tasks changed something, on which nodes and, of a loop, for which items."""

from hpcsite.deploy.tally import Tally
from hpcsite.site.model import Frozen
from hpcsite.site.names import fold


class Change(Frozen):
    """A task that changed something, or in a check would, and the nodes on which it did."""

    nodes: str
    hosts: tuple[str, ...]
    layer: str
    task: str
    items: tuple[str, ...] = ()


def group_changes(tally: Tally) -> tuple[Change, ...]:
    """List changes in the order in which they came; equal ones of several hosts are one."""
    shared: dict[tuple[str, str, str, tuple[str, ...]], list[str]] = {}
    for layer, event in tally.changes:
        key = (layer, event.task, str(event.where), event.items)
        shared.setdefault(key, []).append(event.host)
    return tuple(
        Change(
            nodes=fold(hosts),
            hosts=tuple(sorted(set(hosts))),
            layer=layer,
            task=task,
            items=items,
        )
        for (layer, task, _, items), hosts in shared.items()
    )
