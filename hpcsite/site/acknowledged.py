"""Warnings that a site accepts: `site_acknowledged` says which, and why."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from hpcsite.errors import Problem
from hpcsite.site.codes import CODES, nearest_code
from hpcsite.site.draft import Draft
from hpcsite.site.model import Acknowledgement
from hpcsite.site.sources import KeyPath

_KEY = "acknowledged"
_NUMBER = re.compile(r"\[\d+\]")
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]|\[[^\]]*\]")


def acknowledgements_can_be(draft: Draft) -> Iterator[Problem]:
    """Each entry names the code of a warning: an error cannot be accepted."""
    for number, entry in _entries(draft):
        code = CODES.get(entry.code)
        if code is None:
            meant = nearest_code(entry.code)
            yield draft.problem(
                f"there is no code {entry.code}",
                _path(number, "code"),
                f"did you mean {meant}?" if meant else "`hpcsite explain` lists all codes",
                code="HPC1050",
            )
        elif not code.warning:
            yield draft.problem(
                f"{entry.code} is an error, and only warnings can be acknowledged",
                _path(number, "code"),
                f"correct the mistake: `hpcsite explain {entry.code}` says how",
                code="HPC1051",
            )
        elif (key := entry.key) and _NUMBER.search(key) and (named := _by_names(draft, key)) != key:
            yield draft.problem(
                f"{key} names an entry by its position, and another one may take its place",
                _path(number, "key"),
                f"name it: key: {named}",
                code="HPC1053",
            )


def marked(draft: Draft, warnings: Iterable[Problem]) -> list[Problem]:
    """Write the site's reason into each warning that it accepts."""
    entries = [entry for _, entry in _entries(draft)]
    return [
        next(
            (replace(w, acknowledged=e.reason) for e in entries if _is_of(draft, e, w)),
            w,
        )
        for w in warnings
    ]


def unused(draft: Draft, warnings: Iterable[Problem]) -> Iterator[Problem]:
    """Find the acknowledgements that none of the site's warnings is of."""
    found = list(warnings)
    for number, entry in _entries(draft):
        if not any(_is_of(draft, entry, warning) for warning in found):
            of = f" of {entry.key}" if entry.key else ""
            yield draft.problem(
                f"there is no warning {entry.code}{of} to acknowledge",
                _path(number),
                "remove the entry, or correct its key",
                code="HPC1052",
            )


def _entries(draft: Draft) -> list[tuple[int, Acknowledgement]]:
    return list(draft.entries(_KEY, "code", "key", "reason"))


def _path(number: int, *fields: str) -> KeyPath:
    return (f"site_{_KEY}", number, *fields)


def _is_of(draft: Draft, entry: Acknowledgement, warning: Problem) -> bool:
    """Whether an entry means a warning; a key also means all that stands below it."""
    if entry.code != warning.code:
        return False
    key, named = entry.key, _by_names(draft, warning.key)
    return (
        key is None
        or key in (named, warning.key, warning.host)
        or named.startswith((f"{key}.", f"{key}["))
    )


def _by_names(draft: Draft, key: str) -> str:
    """Write a key with the names of its entries for their numbers: `site_users[alice].uid`.

    What has no name keeps its number.
    """
    value: object = draft.raw
    parts: list[str] = []
    # An entry that is named already ends what can be looked up, and needs no more.
    for step in _STEP.finditer(key):
        if step[2] is None:
            parts.append(step[0])
            value = value.get(step[1]) if isinstance(value, dict) and step[1] else None
            continue
        number = int(step[2])
        value = value[number] if isinstance(value, list) and number < len(value) else None
        name = value.get("name") if isinstance(value, dict) else None
        parts.append(f"[{name}]" if isinstance(name, str) else step[0])
    return "".join(parts)
