"""How Slurm's files spell a value, and the refusal of keys that a site may not set."""

import re
from collections.abc import Iterator

from hpcsite.errors import InvalidSiteError, Problem
from hpcsite.site.cgroup_parameters import SINCE, refused_cgroup_parameters
from hpcsite.site.model import Scalar, SiteKeys
from hpcsite.site.parameters import OWNED_OF_PARTITION, Refusal, refused_parameters
from hpcsite.slurm.release import release


def written(value: Scalar) -> str:
    """Spell a value as Slurm's files do: YES and NO for truth values, quotes around blanks."""
    if isinstance(value, bool):
        return "YES" if value else "NO"
    text = str(value)
    return f'"{text}"' if re.search(r"\s", text) else text


def check_parameters(keys: SiteKeys, version: str = "") -> None:
    """Refuse free parameters that would contradict what hpcsite writes, or leave their line.

    `hpcsite validate` finds these with file and line; this holds for a playbook that was started
    without it, and for keys of cgroup.conf that the release (`version` is what `slurmctld -V`
    prints) does not know. Raises `InvalidSiteError` with all of them.
    """
    refusals = [*_refusals(keys), *_too_new(keys, version)]
    problems = [Problem(refusal.why, hint=refusal.hint) for refusal in refusals]
    if problems:
        raise InvalidSiteError(problems)


def _refusals(keys: SiteKeys) -> Iterator[Refusal]:
    yield from refused_parameters(keys.slurm_parameters).values()
    yield from refused_cgroup_parameters(keys.slurm_cgroup_parameters).values()
    for partition in keys.partitions:
        yield from refused_parameters(partition.parameters, OWNED_OF_PARTITION).values()


def _too_new(keys: SiteKeys, version: str) -> Iterator[Refusal]:
    for key in keys.slurm_cgroup_parameters:
        year, month = SINCE.get(key.lower(), (0, 0))
        if release(version) < (year, month):
            yield Refusal(
                f"{key} of site_slurm_cgroup_parameters is of Slurm {year}.{month:02}, and this "
                f"is {version}: its slurmd would end over the key",
                f"remove {key}",
            )
