"""How Slurm's files spell a value, and the refusal of keys that a site may not set."""

import re
from collections.abc import Iterator

from hpcsite.errors import InvalidSiteError, Problem
from hpcsite.site.model import Scalar, SiteKeys
from hpcsite.site.parameters import OWNED_OF_PARTITION, Refusal, refused_parameters


def written(value: Scalar) -> str:
    """Spell a value as Slurm's files do: YES and NO for truth values, quotes around blanks."""
    if isinstance(value, bool):
        return "YES" if value else "NO"
    text = str(value)
    return f'"{text}"' if re.search(r"\s", text) else text


def check_parameters(keys: SiteKeys) -> None:
    """Refuse free parameters that would contradict what hpcsite writes, or leave their line.

    `hpcsite validate` finds these with file and line; this holds for a playbook that was started
    without it. Raises `InvalidSiteError` with all of them.
    """
    problems = [Problem(refusal.why, hint=refusal.hint) for refusal in _refusals(keys)]
    if problems:
        raise InvalidSiteError(problems)


def _refusals(keys: SiteKeys) -> Iterator[Refusal]:
    yield from refused_parameters(keys.slurm_parameters).values()
    for partition in keys.partitions:
        yield from refused_parameters(partition.parameters, OWNED_OF_PARTITION).values()
