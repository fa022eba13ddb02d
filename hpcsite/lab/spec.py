"""From a site to the machines that its lab needs: pure."""

from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv4Network
from pathlib import Path

from hpcsite.errors import InvalidSiteError, Problem
from hpcsite.site.model import Host, Lab, Site

# Host variable: devices that the machine has, where that is not what its node group declares.
GPUS_VARIABLE = "site_lab_gpus"
_GPUS_MAX = 64
# Host variable: memory of a virtual machine, where that is not what `site_lab` says.
MEMORY_VARIABLE = "site_lab_memory_mib"
MEMORY_MIN_MIB = 768
SSH_PORT = 22


@dataclass(frozen=True)
class Endpoint:
    """Where ssh reaches a machine."""

    address: IPv4Address
    port: int = SSH_PORT

    @property
    def known_host(self) -> str:
        """Return it as known_hosts(5) names it."""
        if self.port == SSH_PORT:
            return str(self.address)
        return f"[{self.address}]:{self.port}"

    def __str__(self) -> str:
        if self.port == SSH_PORT:
            return str(self.address)
        return f"{self.address} port {self.port}"


@dataclass(frozen=True)
class Machine:
    """One machine of a lab."""

    name: str
    address: IPv4Address  # in the lab's network
    ssh: Endpoint
    domain: str | None = None
    gpu_devices: tuple[str, ...] = ()  # paths inside the machine, in order of their minor number
    cpus: int = 0  # of a virtual machine
    memory_mib: int = 0


@dataclass(frozen=True)
class LabSpec:
    """A lab as its inventory describes it."""

    name: str
    inventory: Path
    site: Site
    settings: Lab
    machines: tuple[Machine, ...]

    @property
    def network(self) -> IPv4Network:
        """The lab's network."""
        return self.settings.network


def lab_spec(site: Site) -> LabSpec:
    """Return the lab of a site.

    Raises:
        InvalidSiteError: the site has no lab, or addresses do not lie in the lab's network.
    """
    settings = site.keys.lab
    if settings is None:
        raise InvalidSiteError(
            [
                Problem(
                    f"{site.path} describes no lab: it has no key `site_lab`",
                    hint="machines that exist already need no lab: `hpcsite deploy`; for a lab, "
                    "copy group_vars/all/lab.yml of the inventory `lab`",
                )
            ]
        )
    problems = [
        problem
        for host in site.hosts.values()
        for problem in (
            _address_problem(host, settings.network),
            _gpus_problem(host),
            _memory_problem(host),
            _endpoint_problem(host) if settings.backend == "qemu" else None,
        )
        if problem
    ]
    if problems:
        raise InvalidSiteError(problems)
    machines = tuple(_machine(site, settings, host) for host in site.hosts.values())
    return LabSpec(site.name, site.path, site, settings, machines)


def _machine(site: Site, settings: Lab, host: Host) -> Machine:
    address = IPv4Address(host.address)
    return Machine(
        name=host.name,
        address=address,
        ssh=_endpoint(host) if settings.backend == "qemu" else Endpoint(address),
        domain=site.keys.domain,
        gpu_devices=_gpu_devices(site, host),
        cpus=settings.cpus,
        memory_mib=host.vars.get(MEMORY_VARIABLE, settings.memory_mib),
    )


def _endpoint(host: Host) -> Endpoint:
    return Endpoint(IPv4Address(host.vars["ansible_host"]), int(host.vars["ansible_port"]))


def _gpu_devices(site: Site, host: Host) -> tuple[str, ...]:
    group = site.node_group_of(host)
    gpus = site.keys.node_groups[group].gpus if group else None
    if gpus is None:
        return ()
    count = host.vars.get(GPUS_VARIABLE, gpus.count)
    return tuple(f"{gpus.device}{number}" for number in range(count))


def _gpus_problem(host: Host) -> Problem | None:
    count = host.vars.get(GPUS_VARIABLE, 0)
    if isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= _GPUS_MAX:
        return None
    return Problem(
        f"{host.name}: {GPUS_VARIABLE} is `{count}`",
        host.where,
        f"a whole number from 0 to {_GPUS_MAX}: the GPU devices that this lab machine has",
    )


def _memory_problem(host: Host) -> Problem | None:
    memory = host.vars.get(MEMORY_VARIABLE, MEMORY_MIN_MIB)
    if isinstance(memory, int) and not isinstance(memory, bool) and memory >= MEMORY_MIN_MIB:
        return None
    return Problem(
        f"{host.name}: {MEMORY_VARIABLE} is `{memory}`",
        host.where,
        f"a whole number of MiB, {MEMORY_MIN_MIB} or more: the virtual machine's memory",
    )


def _endpoint_problem(host: Host) -> Problem | None:
    try:
        _endpoint(host)
    except (KeyError, ValueError):
        return Problem(
            f"{host.name}: ansible_host and ansible_port say no port of this computer's loopback",
            host.where,
            "give it `ansible_host: 127.0.0.1` and an `ansible_port` of its own",
        )
    return None


def _address_problem(host: Host, network: IPv4Network) -> Problem | None:
    hint = f"give it an address in {network} other than {network[1]}, the gateway"
    try:
        address = IPv4Address(host.address)
    except AddressValueError:
        return Problem(f"{host.name}: `{host.address}` is no IPv4 address", host.where, hint)
    if address not in network or address in (
        network.network_address,
        network.broadcast_address,
        network[1],
    ):
        message = f"{host.name}: {address} cannot be a machine of the lab's network {network}"
        return Problem(message, host.where, hint)
    return None
