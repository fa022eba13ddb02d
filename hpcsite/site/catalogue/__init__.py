"""What hardware is and must reach: profiles of nodes and switches, each figure with its source.

A figure without a source is None, which means unknown: nothing here is a guess. Units are in the
names of fields and metrics: `gbyte_s` is 10^9 bytes in a second, `gbit_s` 10^9 bits, `mib` 2^20
bytes, `gb` what a data sheet calls GB.
"""

from hpcsite.site.catalogue.facts import (
    gpu_gres,
    heat_w,
    power_w,
    references,
    slurm_hardware,
    unknown,
)
from hpcsite.site.catalogue.limits import reference_problems
from hpcsite.site.catalogue.load import load_catalogue, read_catalogue
from hpcsite.site.catalogue.mig import mig_layout_problems
from hpcsite.site.catalogue.models import Catalogue, Gpu, NodeProfile, Reference, SwitchProfile
from hpcsite.site.catalogue.nearest import Observed, nearest_profile

__all__ = [
    "Catalogue",
    "Gpu",
    "NodeProfile",
    "Observed",
    "Reference",
    "SwitchProfile",
    "gpu_gres",
    "heat_w",
    "load_catalogue",
    "mig_layout_problems",
    "nearest_profile",
    "power_w",
    "read_catalogue",
    "reference_problems",
    "references",
    "slurm_hardware",
    "unknown",
]
