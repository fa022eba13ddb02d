"""Entries of hardware files, laid over their bases, made into models.

A file holds any of the sections `sources`, `gpus`, `nics`, `nodes` and `switches`, each by name. In
a site's file, an entry with `base: NAME` gives only what differs from that entry, which may be
hpcsite's of the same name; `null` makes a figure unknown; and a bare value is a figure whose source
is that line.
"""

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from hpcsite.errors import Location, Problem
from hpcsite.site.catalogue.complete import Unsourced, complete
from hpcsite.site.catalogue.limits import reference_problems
from hpcsite.site.catalogue.models import (
    Catalogue,
    Frozen,
    Gpu,
    Nic,
    NodeProfile,
    SwitchProfile,
)
from hpcsite.site.catalogue.raw import Raw, laid_over, raw_of
from hpcsite.site.names import did_you_mean
from hpcsite.site.yamlfile import read_yaml

# In this order: a node names its GPU and its adapters.
_MODELS: dict[str, type[Frozen]] = {
    "gpus": Gpu,
    "nics": Nic,
    "nodes": NodeProfile,
    "switches": SwitchProfile,
}
_SECTIONS = ("sources", *_MODELS)
_HINT = "docs/catalogue.md has the format"


class Reader:
    """Gathers entries of all files, then makes models of them."""

    def __init__(self, own: "Reader | None") -> None:
        self.problems: list[Problem] = list(own.problems) if own else []
        self._own = own
        self._raw: dict[str, dict[str, Raw]] = {section: {} for section in _SECTIONS}
        self._said: set[tuple[Location, str]] = set()
        self._made: Catalogue | None = None

    def read(self, path: Path, *, site: bool) -> None:
        """Take the entries of one file."""
        file = read_yaml(path)
        self.problems += file.problems
        if file.encrypted:
            hint = "keep it in plain text: it holds no secrets"
            self._problem("the file is encrypted", Location(path), "HPC1720", hint)
        if file.root is None:
            return
        raw = raw_of(file, file.root, site=site)
        if not isinstance(raw.value, dict):
            self._problem("a hardware file is a mapping of sections", raw.where, "HPC1720", _HINT)
            return
        for section, entries in raw.value.items():
            self._section(section, entries)

    def _section(self, section: str, entries: Raw) -> None:
        if section not in _SECTIONS:
            known = did_you_mean(section, _SECTIONS, f"sections are {', '.join(_SECTIONS)}")
            self._problem(f"unknown section {section}", entries.where, "HPC1720", known)
        elif entries.value is not None and not isinstance(entries.value, dict):
            self._problem(f"{section} is a mapping by name", entries.where, "HPC1720", _HINT)
        else:
            for name, entry in (entries.value or {}).items():
                self._entry(section, name, entry)

    def _entry(self, section: str, name: str, entry: Raw) -> None:
        if not isinstance(entry.value, dict):
            self._problem(f"{section}.{name} is a mapping of fields", entry.where, "HPC1720", _HINT)
        elif (first := self._raw[section].get(name)) is not None:
            message = f"{section}.{name} stands here again; it is in {first.where} already"
            self._problem(message, entry.where, "HPC1721", "keep one of the two")
        else:
            self._raw[section][name] = entry

    def catalogue(self) -> Catalogue:
        """Make the models; what is wrong is said once."""
        if self._made is None:
            made: dict[str, dict[str, Frozen]] = {}
            for section, model in _MODELS.items():
                own = getattr(self._own.catalogue(), section) if self._own else {}
                made[section] = dict(own)
                made[section] |= self._models(section, model, made)
            self._made = Catalogue(**cast("dict[str, Any]", made))
        return self._made

    def _models(
        self, section: str, model: type[Frozen], made: dict[str, dict[str, Frozen]]
    ) -> dict[str, Frozen]:
        found: dict[str, Frozen] = {}
        for name in (*self._remade(section), *self._raw[section]):
            whole = self.whole(section, name)
            if whole is None:
                continue
            entry = self._model(section, name, whole, model, made)
            if entry is not None:
                found[name] = entry
        return found

    def _remade(self, section: str) -> list[str]:
        """Name hpcsite's own nodes where the site has a GPU or an adapter that they may hold."""
        if self._own is None or section != "nodes":
            return []
        changed = self._raw["gpus"].keys() | self._raw["nics"].keys()
        return [
            name for name in self._own.raw(section) if changed and name not in self._raw[section]
        ]

    def _with_base(self, section: str, name: str, above: tuple[str, ...]) -> Raw | None:
        """Lay an entry over its base, and that over its own."""
        entry = self._raw[section][name]
        base = entry.get("base")
        if base is None:
            return entry
        over = Raw({k: v for k, v in entry.value.items() if k != "base"}, entry.where, entry.site)
        wanted = str(base.value)
        if wanted in (*above, name) and wanted != name:
            chain = " → ".join((*above, name, wanted))
            self._problem(f"{section}: {chain} is a circle", base.where, "HPC1723", "break it")
            return None
        below: Raw | None = None
        if wanted != name and wanted in self._raw[section]:
            below = self._with_base(section, wanted, (*above, name))
        elif self._own and wanted in self._own.raw(section):
            below = self._own.whole(section, wanted)
        else:
            known = {*self._raw[section], *(self._own.raw(section) if self._own else ())} - {name}
            message, hint = f"{section}.{name}: no base {wanted}", _meant(wanted, known)
            self._problem(message, base.where, "HPC1722", hint, f"{name}.base")
        return laid_over(below, over) if below else None

    def raw(self, section: str) -> dict[str, Raw]:
        """Give the entries of a section as they stand in the files."""
        return self._raw[section]

    def whole(self, section: str, name: str) -> Raw | None:
        """Give an entry with all that it has from its base."""
        if self._own and name not in self._raw[section]:
            return self._own.whole(section, name)
        return self._with_base(section, name, ())

    def _sources(self) -> dict[str, Raw]:
        return (self._own.raw("sources") if self._own else {}) | self._raw["sources"]

    def _model(
        self,
        section: str,
        name: str,
        raw: Raw,
        model: type[Frozen],
        made: dict[str, dict[str, Frozen]],
    ) -> Frozen | None:
        about = f"{section}.{name}"
        try:
            values = complete(raw, model, self._sources())
        except Unsourced as error:
            self._problem(f"{about}: {error}", error.where, "HPC1724", error.hint, about=about)
            return None
        values["name"] = name
        if not self._linked(section, name, raw, values, made):
            return None
        try:
            entry = model.model_validate(values)
        except ValidationError as error:
            self._invalid(section, name, raw, error)
            return None
        if isinstance(entry, Gpu | Nic | NodeProfile):
            for number, message in reference_problems(entry).items():
                where = raw.at(("references", number)).where
                hint = "check the figure, its unit and its source"
                self._problem(f"{about}: {message}", where, "HPC1725", hint, about=about)
        return entry

    def _linked(
        self,
        section: str,
        name: str,
        raw: Raw,
        values: dict[str, Any],
        made: dict[str, dict[str, Frozen]],
    ) -> bool:
        """Put the GPU and the adapters that a node names into its values."""
        if section != "nodes":
            return True
        holders: list[tuple[dict[str, Any], str, str, tuple[str | int, ...]]] = [
            (values, "gpu", "gpus", ("gpu",))
        ]
        nics = values.get("nics")
        holders += [
            (nic, "nic", "nics", ("nics", n, "nic"))
            for n, nic in enumerate(nics if isinstance(nics, list) else ())
            if isinstance(nic, dict)
        ]
        good = True
        for holder, field, target, path in holders:
            wanted = holder.get(field)
            if not isinstance(wanted, str):
                continue
            if wanted in made[target]:
                holder[field] = made[target][wanted]
                continue
            good = False
            if wanted not in self._raw[target]:
                hint = _meant(wanted, made[target])
                about, where = f"{section}.{name}", raw.at(path).where
                message = f"{about}: no {field} {wanted} in the catalogue"
                self._problem(message, where, "HPC1722", hint, f"{name}.{field}", about)
        return good

    def _invalid(self, section: str, name: str, raw: Raw, error: ValidationError) -> None:
        for detail in error.errors(include_url=False):
            path = tuple(detail["loc"])
            key = ".".join(str(step) for step in (name, *path))
            message = detail["msg"].removeprefix("Value error, ")
            hint = _HINT
            if detail["type"] == "extra_forbidden":
                message = "unknown field"
                hint = _field_hint(_MODELS[section], path)
            elif path == ("name",):
                message, hint = "a name is lower-case letters, digits, - and .", "rename it"
            about = f"{section}.{name}"
            said = f"{section}.{key}: {message}"
            self._problem(said, raw.at(path).where, "HPC1721", hint, key, about)

    def _problem(
        self, message: str, where: Location, code: str, hint: str, key: str = "", about: str = ""
    ) -> None:
        # What is wrong with a base is wrong with all that stand on it: it is said once.
        said = (where, message.removeprefix(about))
        if said not in self._said:
            self._said.add(said)
            self.problems.append(Problem(message, where, hint, key, code=code))


def _meant(wanted: str, known: Iterable[str]) -> str:
    """Name the entry that was probably meant; names here may differ in a digit only."""
    names = sorted(known)
    close = difflib.get_close_matches(wanted, names, n=1)
    return f"did you mean {close[0]}?" if close else f"known are {', '.join(names)}"


def _field_hint(model: type[BaseModel], path: tuple[str | int, ...]) -> str:
    """Name the field that a mistyped one of the outermost mapping was meant to be."""
    if len(path) != 1:
        return _HINT
    fields = [field for field in model.model_fields if field != "name"]
    return did_you_mean(str(path[0]), fields, _HINT)
