"""What UCX says of itself with `UCX_LOG_LEVEL=info`: which transport and device data goes over.

Of each configuration of an endpoint UCX writes one line from `ucp_worker.c`, such as
`[time] [gpu01:759 :0] ucp_worker.c:1903 UCX INFO ucp_context_0 inter-node cfg#1
tag(rc_verbs/rxe0:1)`; versions before 1.14 write `ep_cfg[1]: tag(rc_verbs/rxe0:1);`. Lines of
several processes may be mixed, so they are looked for, not counted on.
"""

import re

_LINE = re.compile(r"\[(?P<host>[^\s:\]]+):\d+\s*:\S*\].*?(?P<rest>\bep_cfg\[|\bcfg#|-node cfg#)")
_KINDS = re.compile(r"\b(?:tag|am|rma|stream)\(([^)]*)\)")
_SELF = "self cfg#"


def lanes(text: str) -> dict[str, set[str]]:
    """Return `transport/device` of what each host reaches others over, as `rc_verbs/rxe0:1`."""
    found: dict[str, set[str]] = {}
    for line in text.splitlines():
        head = _LINE.search(line)
        if head is None or _SELF in line:
            continue
        for kinds in _KINDS.findall(line):
            used = {word for word in kinds.split() if not word.startswith("self/")}
            found.setdefault(head["host"].partition(".")[0], set()).update(used)
    return {host: used for host, used in found.items() if used}


def complaint(text: str) -> str:
    """Return the first line in which UCX tells of an error; empty if there is none."""
    for line in text.splitlines():
        if re.search(r"UCX\s+(ERROR|FATAL)|\bFatal:", line):
            return re.sub(r"^.*?UCX\s+(?:ERROR|FATAL)\s+|^.*?(?=Fatal:)", "", line).strip()
    return ""
