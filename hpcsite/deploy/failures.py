"""The failures of a run: which nodes share one, what was said, and what to do about its cause."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Cause:
    """What is wrong with a host, in words. `address` is that of the host, if it is in them."""

    message: str
    hint: str = ""
    address: str = ""


def as_said(event: HostEvent) -> Cause:
    """Take a failure's own words."""
    return Cause(event.message)


def group_failures(
    tally: Tally, explain: Callable[[HostEvent], Cause] = as_said
) -> tuple[Failure, ...]:
    """Failures with the nodes that share them, in the order in which they came.

    Messages that differ only by the host's own name or address are one, and name all the hosts.
    """
    shared: dict[tuple[str, ...], list[tuple[HostFailure, Cause]]] = {}
    for host, failure in tally.failures().items():
        event = failure.event
        cause = explain(event)
        message = _generalised(cause, host)
        key = (event.status, failure.layer, event.task, str(event.where), message)
        shared.setdefault(key, []).append((failure, cause))
    return tuple(_failure(key[-1], members) for key, members in shared.items())


def _generalised(cause: Cause, host: str) -> str:
    """Put marks in the places of the host's own name and address."""
    text = _whole(host).sub(_NODES, cause.message)
    return _whole(cause.address).sub(_ADDRESSES, text) if cause.address else text


def _whole(word: str) -> re.Pattern[str]:
    """Match a name or an address, and not a part of a longer one."""
    return re.compile(rf"(?<![\w.-]){re.escape(word)}(?![\w-])")


def _failure(message: str, members: Sequence[tuple[HostFailure, Cause]]) -> Failure:
    failure, cause = members[0]
    event = failure.event
    hosts = sorted(other.event.host for other, _ in members)
    addresses = fold(dict.fromkeys(c.address for _, c in members if c.address))
    hint = cause.hint
    if len({c.hint for _, c in members}) > 1:
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
