"""The frozen model of a site.

Every `site_*` key of an inventory has its field in `SiteKeys`, under the same name less the prefix.
The role `site` declares the same keys and defaults for Ansible; a test holds the two equal. Units
are in the names: `memory_mib` is MiB (2^20 bytes).
"""

from hpcsite.site.model.accounts import Group, User
from hpcsite.site.model.base import PATTERNS, Frozen, Scalar
from hpcsite.site.model.keys import SiteKeys
from hpcsite.site.model.lab import Lab
from hpcsite.site.model.nodes import Gpus, Hardware, NodeGroup
from hpcsite.site.model.site import Host, Site
from hpcsite.site.model.slurm import Partition
from hpcsite.site.model.storage import NfsExport

__all__ = [
    "PATTERNS",
    "Frozen",
    "Gpus",
    "Group",
    "Hardware",
    "Host",
    "Lab",
    "NfsExport",
    "NodeGroup",
    "Partition",
    "Scalar",
    "Site",
    "SiteKeys",
    "User",
]
