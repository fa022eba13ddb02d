"""What a starter inventory is written for."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Address, ip_network
from itertools import count

from hpcsite.errors import UsageError
from hpcsite.site.groups import FEATURES, IMPLICIT
from hpcsite.site.model import Hardware
from hpcsite.site.rdma import Mode

# RFC 5737: addresses for examples; `hpcsite validate` refuses them until they are replaced.
_EXAMPLES = ip_network("192.0.2.0/24")


@dataclass(frozen=True)
class StarterRdma:
    """What hosts have for RDMA: the interface is that under RoCE, the speed that of InfiniBand."""

    mode: Mode
    interface: str = ""
    devices: tuple[str, ...] = ()
    speed_gbit_s: int = 0


@dataclass(frozen=True)
class Machine:
    """A host, its address in the cluster, and what ssh is given for it where that is another."""

    name: str
    address: str
    reached_by: str = ""
    rdma: StarterRdma | None = None

    @property
    def variables(self) -> dict[str, str]:
        """What its entry in the inventory says of it."""
        if self.reached_by in ("", self.address):
            return {"ansible_host": self.address}
        return {"ansible_host": self.reached_by, "site_address": self.address}


@dataclass(frozen=True)
class StarterGroup:
    """A node group; `notes` are the lines of comments above it."""

    name: str
    nodes: tuple[Machine, ...]
    gpus: int = 0
    gpu_type: str = ""
    profile: str = ""
    hardware: Hardware | None = None
    rdma: StarterRdma | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class StarterUser:
    """A user beside the one who runs `hpcsite verify`."""

    name: str
    uid: int


@dataclass(frozen=True)
class Starter:
    """What a starter inventory is written for."""

    name: str
    head: Machine
    groups: tuple[StarterGroup, ...]
    logins: tuple[Machine, ...] = ()
    nfs_server: Machine | None = None
    users: tuple[StarterUser, ...] = ()
    ssh_user: str = "root"
    ssh_args: str = ""
    timezone: str = "Etc/UTC"
    notes: tuple[str, ...] = field(default=())

    @property
    def machines(self) -> tuple[Machine, ...]:
        """Every machine once, the head first."""
        server = (self.nfs_server,) if self.nfs_server else ()
        nodes = (node for group in self.groups for node in group.nodes)
        return tuple(dict.fromkeys((self.head, *server, *self.logins, *nodes)))

    @property
    def rdma_groups(self) -> tuple[StarterGroup, ...]:
        """The node groups that have RDMA."""
        return tuple(group for group in self.groups if group.rdma)

    @property
    def rdma_hosts(self) -> tuple[Machine, ...]:
        """The hosts outside of these that have RDMA."""
        grouped = {node.name for group in self.rdma_groups for node in group.nodes}
        return tuple(host for host in self.machines if host.rdma and host.name not in grouped)

    @property
    def infiniband_speed(self) -> int:
        """Speed of a port of the InfiniBand fabric in Gb/s; 0 where there is none."""
        every = [*(group.rdma for group in self.rdma_groups), *(h.rdma for h in self.rdma_hosts)]
        return max((r.speed_gbit_s for r in every if r and r.mode == "infiniband"), default=0)

    @property
    def is_example(self) -> bool:
        """Whether a machine still has an address for examples, which no valid site has."""
        return any(IPv4Address(machine.address) in _EXAMPLES for machine in self.machines)

    @property
    def free_address(self) -> IPv4Address:
        """The address nearest to the head's that no machine has; for the sample login node."""
        taken = {IPv4Address(machine.address) for machine in self.machines}
        head = int(IPv4Address(self.head.address))
        near = ((head + sign * step) % 2**32 for step in count(1) for sign in (1, -1))
        # .0 and .255 are mostly the network's own.
        usable = (IPv4Address(number) for number in near if 0 < number % 256 < 255)
        return next(address for address in usable if address not in taken)

    def check(self) -> None:
        """Raise `UsageError` for what cannot be meant."""
        _distinct(self.machines, "name", lambda machine: machine.name.lower())
        _distinct(self.machines, "address", lambda machine: machine.address)
        names = {machine.name for machine in self.machines}
        seen: set[str] = set()
        for group in self.groups:
            if reason := _unusable(group.name, names, seen):
                raise UsageError(
                    f"{group.name} cannot be a node group's name: {reason}",
                    hint="choose another one, e.g. compute",
                )
            seen.add(group.name)
        for node, first, second in _in_two_groups(self.groups):
            raise UsageError(
                f"{node} is in the node groups {first} and {second}",
                hint="each compute node is in one",
            )
        for login in self.logins:
            if any(login in group.nodes for group in self.groups):
                raise UsageError(
                    f"{login.name} is a login node and a compute node",
                    hint="a compute node has Slurm's commands anyway: leave it out as a login node",
                )


def _unusable(name: str, hosts: set[str], seen: set[str]) -> str:
    if name in FEATURES or name in IMPLICIT or name.lower() == "default":
        return "it has a meaning of its own"
    if name in hosts:
        return "a machine is called so"
    return "there are two of them" if name in seen else ""


def _in_two_groups(groups: Iterable[StarterGroup]) -> Iterator[tuple[str, str, str]]:
    owner: dict[str, str] = {}
    for group in groups:
        for node in group.nodes:
            first = owner.setdefault(node.name, group.name)
            if first != group.name:
                yield node.name, first, group.name


def _distinct(machines: Iterable[Machine], what: str, key: Callable[[Machine], str]) -> None:
    seen: dict[str, str] = {}
    for machine in machines:
        if key(machine) in seen:
            raise UsageError(
                f"{seen[key(machine)]} and {machine.name} have the same {what}: {key(machine)}",
                hint=f"give each machine its own {what}",
            )
        seen[key(machine)] = machine.name
