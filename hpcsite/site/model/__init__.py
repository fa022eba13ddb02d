"""The frozen model of a site.

Every `site_*` key of an inventory has its field in `SiteKeys`, under the same name less the prefix.
The role `site` declares the same keys and defaults for Ansible; a test holds the two equal. Units
are in the names: `memory_mib` is MiB (2^20 bytes).
"""

from hpcsite.site.model.accounts import Account, Association, Group, Limits, User
from hpcsite.site.model.acknowledgement import Acknowledgement
from hpcsite.site.model.base import FORM, PATTERNS, Frozen, Scalar, TresMap
from hpcsite.site.model.hardware import Gpus, Hardware, Mig
from hpcsite.site.model.host import HostKeys
from hpcsite.site.model.keys import SiteKeys
from hpcsite.site.model.lab import Lab
from hpcsite.site.model.monitoring import Monitoring, Receiver
from hpcsite.site.model.network import Fabric, Network, Switch, SwitchLink
from hpcsite.site.model.nodes import NodeGroup
from hpcsite.site.model.racks import Rack, RackFeed, RackItem
from hpcsite.site.model.site import Host, Site
from hpcsite.site.model.slurm import Partition, PreemptMode, Qos
from hpcsite.site.model.software import Software
from hpcsite.site.model.storage import (
    Beegfs,
    BeegfsMeta,
    BeegfsStorage,
    Lustre,
    LustreTarget,
    NfsExport,
    Scratch,
)

__all__ = [
    "FORM",
    "PATTERNS",
    "Account",
    "Acknowledgement",
    "Association",
    "Beegfs",
    "BeegfsMeta",
    "BeegfsStorage",
    "Fabric",
    "Frozen",
    "Gpus",
    "Group",
    "Hardware",
    "Host",
    "HostKeys",
    "Lab",
    "Limits",
    "Lustre",
    "LustreTarget",
    "Mig",
    "Monitoring",
    "Network",
    "NfsExport",
    "NodeGroup",
    "Partition",
    "PreemptMode",
    "Qos",
    "Rack",
    "RackFeed",
    "RackItem",
    "Receiver",
    "Scalar",
    "Scratch",
    "Site",
    "SiteKeys",
    "Software",
    "Switch",
    "SwitchLink",
    "TresMap",
    "User",
]
