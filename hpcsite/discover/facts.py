"""What one host says of itself. None and empty are not known."""

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

ACTIVE, INIT = "ACTIVE", "INIT"
INFINIBAND, ETHERNET = "InfiniBand", "Ethernet"


class Cpus(NamedTuple):
    """How many CPUs there are, and how they are built."""

    sockets: int
    cores_per_socket: int
    threads_per_core: int

    def __str__(self) -> str:
        return f"{self.sockets} x {self.cores_per_socket} cores x {self.threads_per_core} threads"


@dataclass(frozen=True)
class Gpu:
    """A GPU; without the driver, its name is that of the list of PCI devices, or its number."""

    name: str
    memory_mib: int | None = None
    driver: bool = True


@dataclass(frozen=True)
class Port:
    """A port of an RDMA adapter."""

    hca: str
    kind: str
    number: int
    rate_gbit_s: int | None
    link_layer: str
    state: str
    interfaces: tuple[str, ...] = ()

    @property
    def active(self) -> bool:
        """Whether something is plugged in, and a subnet manager has seen it."""
        return self.state == ACTIVE

    @property
    def waits(self) -> bool:
        """Whether something is plugged in, and no subnet manager has been there."""
        return self.state == INIT


@dataclass(frozen=True)
class Interface:
    """A network interface with its IPv4 addresses."""

    name: str
    mac: str = ""
    mtu: int | None = None
    up: bool = False
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True)
class Disk:
    """A disk, by its size in bytes."""

    name: str
    size: int
    rotational: bool
    model: str = ""

    @property
    def kind(self) -> str:
        """What it is in words, with its size."""
        sort = "NVMe" if self.name.startswith("nvme") else "disk" if self.rotational else "SSD"
        return f"{self.size / 1e12:.1f} TB {sort}"


@dataclass(frozen=True)
class Facts:
    """What a host says of itself; `target` is what ssh was given for it."""

    target: str
    hostname: str = ""
    ssh_address: str = ""
    kernel: str = ""
    os: str = ""
    product: str = ""
    cpu_model: str = ""
    cpus: Cpus | None = None
    memory_mib: int | None = None
    gpus: tuple[Gpu, ...] = ()
    gpus_on_bus: int = 0
    ports: tuple[Port, ...] = ()
    interfaces: tuple[Interface, ...] = ()
    default_interface: str = ""
    disks: tuple[Disk, ...] = ()

    @property
    def hcas(self) -> Counter[tuple[str, str]]:
        """How many adapters there are of each type and link layer."""
        seen = {port.hca: (port.kind, port.link_layer) for port in reversed(self.ports)}
        return Counter(seen.values())

    @property
    def gpu_names(self) -> Counter[str]:
        """How many GPUs there are of each name."""
        return Counter(gpu.name for gpu in self.gpus)
