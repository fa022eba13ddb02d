"""The failures of a run: which nodes share one, what was said, and what to do about its cause."""

import re
from collections.abc import Sequence
from typing import Literal

from hpcsite.deploy.events import HostEvent
from hpcsite.deploy.tally import HostFailure, Tally
from hpcsite.site.model import Frozen
from hpcsite.site.names import fold

# Marks that stand in no message.
_NODES, _ADDRESSES = "\0nodes\0", "\0addresses\0"


class Failure(Frozen):
    """One failure and the nodes that have it in common."""

    nodes: str
    hosts: tuple[str, ...]
    kind: Literal["failed", "unreachable"]
    layer: str
    task: str
    file: str
    line: int
    message: str
    hint: str = ""


def group_failures(tally: Tally) -> tuple[Failure, ...]:
    """Failures with the nodes that share them, in the order in which they came.

    Messages that differ only by the host's own name or address are one, and name all the hosts.
    """
    shared: dict[tuple[str, ...], list[HostFailure]] = {}
    for failure in tally.failures().values():
        event = failure.event
        message = _generalised(event)
        key = (event.status, failure.layer, event.task, str(event.where), message)
        shared.setdefault(key, []).append(failure)
    return tuple(_failure(key[-1], members) for key, members in shared.items())


def _generalised(event: HostEvent) -> str:
    """Put marks in the places of the host's own name and address."""
    text = _whole(event.host).sub(_NODES, event.message)
    return _whole(event.address).sub(_ADDRESSES, text) if event.address else text


def _whole(word: str) -> re.Pattern[str]:
    """Match a name or an address, and not a part of a longer one."""
    return re.compile(rf"(?<![\w.-]){re.escape(word)}(?![\w-])")


def _failure(message: str, members: Sequence[HostFailure]) -> Failure:
    failure, event = members[0], members[0].event
    events = [member.event for member in members]
    hosts = sorted(other.host for other in events)
    addresses = fold({other.address for other in events if other.address})
    hint = event.hint
    if len({other.hint for other in events}) > 1:
        hint += "; likewise for the others"
    return Failure(
        nodes=fold(hosts),
        hosts=tuple(hosts),
        kind="unreachable" if event.status == "unreachable" else "failed",
        layer=failure.layer,
        task=event.task,
        file=str(event.where.path) if event.where else "",
        line=event.where.line if event.where else 0,
        message=message.replace(_NODES, fold(hosts)).replace(_ADDRESSES, addresses),
        hint=hint,
    )
