"""The backends by their names in `site_lab`."""

from hpcsite.lab.backend import Kind
from hpcsite.lab.nspawn_kind import NspawnKind
from hpcsite.lab.qemu.kind import QemuKind

KINDS: dict[str, Kind] = {"nspawn": NspawnKind(), "qemu": QemuKind()}
