"""Free parameters of slurm.conf and cgroup.conf: keys of this Slurm, with values that it takes."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from hpcsite.errors import Problem
from hpcsite.site.cgroup_parameters import OWNED_OF_CGROUP, refused_cgroup_parameters
from hpcsite.site.draft import Draft
from hpcsite.site.model import Scalar
from hpcsite.site.parameters import OWNED, OWNED_OF_PARTITION, refused_parameters
from hpcsite.site.rules.slurm import seconds_of, time_problem
from hpcsite.site.sources import KeyPath
from hpcsite.slurm.keys import (
    KeyProblem,
    arity,
    find_key,
    key_problem,
    meaning,
    sections,
    table_releases,
)
from hpcsite.slurm.values import value_problem
from hpcsite.slurm.versions import read_version

_CONF, _CGROUP = "slurm.conf", "cgroup.conf"


@dataclass(frozen=True)
class _Parameters:
    """Free parameters of one place: the section of the file that they go to."""

    file: str
    section: str
    path: KeyPath
    values: Mapping[str, Scalar | None]
    owned: Mapping[str, str]

    def own(self) -> Iterator[tuple[str, Scalar | None, KeyPath]]:
        """Give what a site may set at all; the rest has its rule."""
        refused = refused_parameters(self.values, self.owned)
        for name, value in self.values.items():
            if name not in refused:
                yield name, value, (*self.path, name)


def _places(draft: Draft) -> Iterator[_Parameters]:
    values = draft.keys.slurm_parameters
    yield _Parameters(_CONF, "global", ("site_slurm_parameters",), values, OWNED)
    for number, partition in draft.entries("partitions"):
        path: KeyPath = ("site_partitions", number, "parameters")
        yield _Parameters(_CONF, "PartitionName", path, partition.parameters, OWNED_OF_PARTITION)


def parameters_are_free(draft: Draft) -> Iterator[Problem]:
    """Free parameters do not contradict what hpcsite writes, and stay on their line."""
    for place in _places(draft):
        for name, refusal in refused_parameters(place.values, place.owned).items():
            yield draft.problem(refusal.why, (*place.path, name), refusal.hint, code=refusal.code)


def cgroup_parameters_can_be(draft: Draft) -> Iterator[Problem]:
    """Hold that slurmd knows what goes into cgroup.conf, and that cgroups are used at all."""
    key = "site_slurm_cgroup_parameters"
    parameters = draft.keys.slurm_cgroup_parameters
    for name, refusal in refused_cgroup_parameters(parameters).items():
        yield draft.problem(refusal.why, (key, name), refusal.hint, code=refusal.code)
    if parameters and draft.keys.slurm_process_tracking == "linuxproc":
        yield draft.problem(
            "site_slurm_process_tracking is linuxproc, so Slurm reads no key of cgroup.conf",
            (key,),
            f"remove {key}, or set site_slurm_process_tracking to cgroup or auto",
            code="HPC1218",
        )


def keys_are_of_this_slurm(draft: Draft) -> Iterator[Problem]:
    """Check that the Slurm that is pinned, or else any that is supported, knows each key."""
    for place in _places(draft):
        for name, _, path in place.own():
            if found := _key_problem(draft, place.file, place.section, name):
                yield _told(draft, found, path)


def cgroup_keys_are_of_this_slurm(draft: Draft) -> Iterator[Problem]:
    """Check the same of cgroup.conf; keys that no release knows have a rule of their own."""
    key = "site_slurm_cgroup_parameters"
    parameters = draft.keys.slurm_cgroup_parameters
    refused = refused_cgroup_parameters(parameters)
    for name in parameters:
        if name not in refused and name.lower() not in OWNED_OF_CGROUP:
            found = _key_problem(draft, _CGROUP, "global", name)
            if found and found.kind != "unknown":
                yield _told(draft, found, (key, name))


def values_are_slurm_s(draft: Draft) -> Iterator[Problem]:
    """Check that Slurm's parser takes the values, and that lists are written as it reads them."""
    for place in _places(draft):
        for name, value, path in place.own():
            if value is None or not find_key(place.file, place.section, name):
                continue
            if (text := _misread(draft, value, path)) is not None:
                yield draft.problem(
                    f"YAML reads {text} of {name} as {json.dumps(value)}",
                    path,
                    f'write it in quotes: "{text}"',
                    code="HPC1238",
                )
            else:
                yield from _value(draft, place, name, _written(value), path)


def _misread(draft: Draft, value: Scalar, path: KeyPath) -> str | None:
    """Find what stands in the file, where YAML makes something else of it that Slurm would take.

    1:00:00 is the number 3600, and OFF is false; either is a word of Slurm's.
    """
    definition = draft.definition(str(path[0]))
    text = definition.scalar(path[1:]) if definition and not isinstance(value, str) else None
    if text is None:
        return None
    is_time = ":" in text
    is_mode = isinstance(value, bool) and str(path[-1]).lower() == "preemptmode"
    return text if is_time or is_mode else None


def _value(
    draft: Draft, place: _Parameters, name: str, value: str, path: KeyPath
) -> Iterator[Problem]:
    if why := value_problem(place.file, place.section, name, value):
        yield draft.problem(why, path, f"see {name} in {place.file}(5)", code="HPC1222")
        return
    if meaning(place.file, place.section, name) == "time" and seconds_of(value) is None:
        yield time_problem(draft, value, path)
    how = arity(place.file, place.section, name)
    parts = value.split()
    if how == "list" and len(parts) > 1:
        yield draft.problem(
            f"{name} is a list, and its members stand in it with blanks between them",
            path,
            f"write commas without blanks: {','.join(part.strip(',') for part in parts)}",
            code="HPC1223",
        )
    elif how == "lines" and _begins_lines(place.file, name) and len(parts) > 1:
        yield draft.problem(
            f"{name} begins a line with keys of its own, which a parameter cannot write",
            path,
            "remove it: hpcsite has no key for this part of slurm.conf",
            code="HPC1223",
        )
    elif how == "lines" and not _begins_lines(place.file, name) and "," in value:
        yield draft.problem(
            f"{name} takes one value on each line of {place.file}, and no list",
            path,
            "name one program here, which can call the others",
            code="HPC1223",
        )


def _begins_lines(file: str, name: str) -> bool:
    return name.lower() in {section.lower() for section in sections(file)}


def _key_problem(draft: Draft, file: str, section: str, name: str) -> KeyProblem | None:
    """Say why Slurm does not take a key; without a pin, only what no supported release takes."""
    pinned = draft.keys.software.slurm
    if pinned and read_version(pinned):
        return key_problem(pinned, file, section, name)
    found = None
    for release in table_releases():
        found = key_problem(release, file, section, name)
        if found is None:
            return None
        # What the newest says: it knows all that has become of a key.
        message = found.message.replace(f"Slurm {release} knows no key", "Slurm knows no key")
        found = replace(found, message=message)
    return found


def _told(draft: Draft, found: KeyProblem, path: KeyPath) -> Problem:
    hint = "; ".join(filter(None, (found.hint, found.note)))
    if found.kind == "unknown":
        return draft.problem(found.message, path, hint, code="HPC1219")
    if found.kind == "not yet":
        return draft.problem(found.message, path, hint, code="HPC1221")
    return draft.problem(found.message, path, hint, code="HPC1220")


def _written(value: Scalar) -> str:
    """Spell a value as it will stand in the file."""
    if isinstance(value, bool):
        return "YES" if value else "NO"
    return str(value)


RULES = (
    parameters_are_free,
    cgroup_parameters_can_be,
    keys_are_of_this_slurm,
    cgroup_keys_are_of_this_slurm,
    values_are_slurm_s,
)
