"""What all files of Slurm that hpcsite writes have in common: their head, and free parameters."""

from collections.abc import Mapping

from hpcsite.site.model import Scalar
from hpcsite.slurm.parameters import written

HEADER = """\
# Managed by hpcsite: the inventory says what stands here, and a deploy writes it again.
"""
# Lists that a site adds to; any other key of site_slurm_parameters replaces the default.
MERGED = frozenset(
    {"accountingstorageenforce", "accountingstoragetres", "slurmctldparameters", "slurmdparameters"}
)


def merge(defaults: Mapping[str, str], parameters: Mapping[str, Scalar | None]) -> dict[str, str]:
    """Defaults with the site's keys: some lists are added to, null takes a default away."""
    spelling = {key.lower(): key for key in defaults}
    merged = dict(defaults)
    for key, value in parameters.items():
        name = spelling.get(key.lower(), key)
        if value is None:
            merged.pop(name, None)
        elif key.lower() in MERGED and name in merged:
            extra = [item for item in str(value).split(",") if item not in merged[name].split(",")]
            merged[name] = ",".join([merged[name], *extra])
        else:
            merged[name] = written(value)
    return merged
