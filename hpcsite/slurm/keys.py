"""Which keys each release of Slurm knows, per file and section. Pure; the table is data.

`data/keys.json` says what Slurm's own parsers accept (its `_about` names their sources) and
`data/values.yml` what the manual pages say of values. A daemon of Slurm ends over a key that it
does not know; a defunct one it takes only to say so.

A section is `global` or the key that begins its lines (`NodeName`, `PartitionName`, …); lines of
gres.conf are the section `entry`. Names of keys, sections and files are compared as Slurm compares
them: without regard to case.
"""

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import yaml

from hpcsite.slurm.versions import TableRelease, release_in

Arity = Literal["one", "list", "lines"]
Kind = Literal["unknown", "defunct", "not yet", "removed"]

_CUTOFF = 0.75


@dataclass(frozen=True)
class Key:
    """A key as Slurm's parsers have it."""

    file: str
    section: str
    name: str
    """As Slurm spells it."""
    type: str
    """As Slurm's parser reads it: string, boolean, uint16, uint32, uint64, float or array."""
    known_in: tuple[str, ...]
    """Releases that accept the key, even if only to say that it is defunct."""
    defunct_in: tuple[str, ...] = ()


@dataclass(frozen=True)
class KeyProblem:
    """Why a release of Slurm does not take a key."""

    kind: Kind
    message: str
    hint: str = ""
    since: str = ""
    """The release that made the key defunct, removed it, or is the first to know it."""
    nearest: str = ""
    """The known key that was probably meant."""
    note: str = ""
    """Said where the table does not know the version itself."""


def table_releases() -> tuple[str, ...]:
    """Releases of Slurm that the table knows, the oldest first."""
    return tuple(sorted(_table()["releases"]))


def sections(file: str) -> tuple[str, ...]:
    """Sections of a file, as the table names them. Raises `KeyError` for an unknown file."""
    return tuple(dict.fromkeys(key.section for key in _file(file).values()))


def known_keys(version: str, file: str, section: str = "global") -> tuple[str, ...]:
    """Keys that a version takes and uses, as Slurm spells them; defunct ones are left out."""
    release = release_in(version, table_releases()).release
    return tuple(
        key.name
        for key in _section(file, section).values()
        if release in key.known_in and release not in key.defunct_in
    )


def all_keys() -> tuple[Key, ...]:
    """Every key of every release, in the order of the table."""
    return tuple(_keys().values())


def find_key(file: str, section: str, name: str) -> Key | None:
    """Find a key of any release. Raises `KeyError` for a file or section that there is not."""
    return _section(file, section).get(name.lower())


def key_problem(version: str, file: str, section: str, name: str) -> KeyProblem | None:
    """Say why a version of Slurm does not take a key; None for one that it uses."""
    judged = release_in(version, table_releases())
    key = find_key(file, section, name)
    if key is None:
        return _unknown(judged, file, section, name)
    if judged.release in key.defunct_in:
        return _defunct(judged, key)
    if judged.release in key.known_in:
        return None
    if judged.release < key.known_in[0]:
        return _not_yet(judged, key)
    return _removed(judged, key)


def arity(file: str, section: str, name: str) -> Arity | None:
    """Say how many values a key takes, and how they are written; None where that is not certain.

    `lines`: each on a line of its own, the key again before it; `list`: on one line with commas
    between them; `one`: a single value.
    """
    key = find_key(file, section, name)
    if key is None:
        return None
    if key.type == "array":
        return "lines"
    if key.type != "string":
        return "one"
    return "list" if _place(key.file, key.section, key.name) in _lists() else None


def meaning(file: str, section: str, name: str) -> str | None:
    """Say what the value of a key is: `time`, `memory_mib` or `count`; None for anything else."""
    return _meanings().get(_place(file, section, name))


def _unknown(judged: TableRelease, file: str, section: str, name: str) -> KeyProblem:
    elsewhere = [
        key for key in _keys().values() if key.name.lower() == name.lower() and key.type != "array"
    ]
    known = {known.lower(): known for known in known_keys(judged.release, file, section)}
    close = difflib.get_close_matches(name.lower(), known, n=1, cutoff=_CUTOFF)
    nearest = known[close[0]] if close else ""
    if nearest:
        hint = f"did you mean {nearest}?"
    elif elsewhere:
        places = " or ".join(f"{_lines_of(key.section)} {key.file}" for key in elsewhere)
        hint = f"it belongs {places}"
    else:
        hint = f"see {file}(5) for the keys that there are"
    return KeyProblem(
        "unknown",
        f"Slurm {judged.release} knows no key {name} {_lines_of(section)} {file}",
        hint,
        nearest=nearest,
        note=judged.note,
    )


def _defunct(judged: TableRelease, key: Key) -> KeyProblem:
    since = key.defunct_in[0]
    first = "" if since != table_releases()[0] else " or an earlier release"
    return KeyProblem(
        "defunct",
        f"{key.name} of {key.file} is defunct since Slurm {since}{first}",
        _instead(key) or f"remove {key.name}",
        since=since,
        note=judged.note,
    )


def _not_yet(judged: TableRelease, key: Key) -> KeyProblem:
    since = key.known_in[0]
    return KeyProblem(
        "not yet",
        f"{key.name} of {key.file} is known to Slurm only since {since}",
        f"remove {key.name}, or use Slurm {since} or later",
        since=since,
        note=judged.note,
    )


def _removed(judged: TableRelease, key: Key) -> KeyProblem:
    releases = table_releases()
    since = releases[releases.index(key.known_in[-1]) + 1]
    return KeyProblem(
        "removed",
        f"{key.name} of {key.file} is gone since Slurm {since}",
        _instead(key) or f"remove {key.name}",
        since=since,
        note=judged.note,
    )


def _instead(key: Key) -> str:
    for entry in _values()["instead"]:
        if (entry["file"], entry["key"]) == (key.file, key.name):
            return str(entry["instead"])
    return ""


def _lines_of(section: str) -> str:
    return "in" if section.lower() == "global" else f"on the {section} lines of"


def _place(file: str, section: str, name: str) -> tuple[str, str, str]:
    return file.lower(), section.lower(), name.lower()


@cache
def _lists() -> frozenset[tuple[str, str, str]]:
    return frozenset(
        _place(entry["file"], entry["section"], key)
        for entry in _values()["lists"]
        for key in entry["keys"]
    )


@cache
def _meanings() -> Mapping[tuple[str, str, str], str]:
    return {
        _place(entry["file"], entry["section"], key): entry["meaning"]
        for entry in _values()["meanings"]
        for key in entry["keys"]
    }


def _section(file: str, section: str) -> dict[str, Key]:
    found = {place[2]: key for place, key in _file(file).items() if place[1] == section.lower()}
    if not found:
        raise KeyError(f"{file} has no section {section}")
    return found


def _file(file: str) -> dict[tuple[str, str, str], Key]:
    found = {place: key for place, key in _keys().items() if place[0] == file.lower()}
    if not found:
        raise KeyError(f"no file of Slurm's is called {file}")
    return found


@cache
def _keys() -> Mapping[tuple[str, str, str], Key]:
    table = _table()
    return {
        _place(file, section, name): Key(
            file,
            section,
            name,
            entry["type"],
            tuple(sorted(entry["in"])),
            tuple(sorted(entry.get("defunct", ()))),
        )
        for file in table
        if not file.startswith("_") and file != "releases"
        for section, keys in table[file].items()
        for name, entry in keys.items()
    }


@cache
def _table() -> dict[str, Any]:
    text = (files("hpcsite.slurm") / "data" / "keys.json").read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table


@cache
def _values() -> dict[str, Any]:
    text = (files("hpcsite.slurm") / "data" / "values.yml").read_text(encoding="utf-8")
    values: dict[str, Any] = yaml.safe_load(text)
    return values
