"""What the role `rdma` is told of a host, for those who verify it."""

from dataclasses import dataclass
from typing import Literal, cast

from hpcsite.site.model import Host

Mode = Literal["infiniband", "roce", "soft_roce", "none"]
KEYS = ("rdma_mode", "rdma_interface", "rdma_devices", "rdma_soft_device")
DEFAULT_MODE: Mode = "infiniband"
DEFAULT_SOFT_DEVICE = "rxe0"


@dataclass(frozen=True)
class Rdma:
    """What a host is to have. `devices` is empty where any that fits will do."""

    mode: Mode
    interface: str = ""
    devices: tuple[str, ...] = ()


def rdma_of(host: Host) -> Rdma | None:
    """Return what a host is to have for RDMA; None for one that is to have none."""
    mode = cast("Mode", host.vars.get("rdma_mode") or DEFAULT_MODE)
    if "rdma" not in host.groups or mode == "none":
        return None
    interface = str(host.vars.get("rdma_interface") or "")
    if mode == "soft_roce":
        device = str(host.vars.get("rdma_soft_device") or DEFAULT_SOFT_DEVICE)
        return Rdma(mode, interface, (device,))
    devices = tuple(str(name) for name in host.vars.get("rdma_devices") or ())
    return Rdma(mode, interface, devices)
