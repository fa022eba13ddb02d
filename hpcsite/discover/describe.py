"""A group of hosts that are alike → its hardware, profile, RDMA and what is said in comments."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from pydantic import ValidationError

from hpcsite.discover.facts import ETHERNET, INFINIBAND, Facts, Port
from hpcsite.site.catalogue import Catalogue, Observed, nearest_profile
from hpcsite.site.catalogue.nearest import Candidate, is_gpu
from hpcsite.site.model import Hardware
from hpcsite.site.names import fold
from hpcsite.site.rules.rdma import is_interface
from hpcsite.site.starter import StarterRdma

_NAMED = 3


def hardware_of(hosts: Sequence[Facts]) -> Hardware | None:
    """Give the CPUs, and the memory of the host that has the least; None where unknown."""
    cpus, memory = hosts[0].cpus, min(host.memory_mib or 0 for host in hosts)
    if cpus is None:
        return None
    try:
        return Hardware(**cpus._asdict(), memory_mib=memory)
    except ValidationError:
        return None


def candidates(hosts: Sequence[Facts], catalogue: Catalogue) -> list[Candidate]:
    """List the profiles that these hosts may be, the nearest first."""
    products = {host.product for host in hosts}
    cpus = hosts[0].cpus
    observed = Observed(
        sockets=cpus.sockets if cpus else None,
        cores_per_socket=cpus.cores_per_socket if cpus else None,
        memory_mib=min(host.memory_mib or 0 for host in hosts) or None,
        gpus=tuple(sorted(hosts[0].gpu_names.elements())),
        hcas=hosts[0].hcas.total(),
        product=products.pop() if len(products) == 1 else "",
    )
    return nearest_profile(observed, catalogue)


def sure_profile(found: Sequence[Candidate]) -> str:
    """Name the profile that these hosts are: none other fits, or their firmware names it."""
    exact = [candidate for candidate in found if candidate.exact]
    if not exact or exact[0] is not found[0]:
        return ""
    named = any(reason.startswith("product:") for reason in exact[0].agrees)
    return exact[0].profile.name if named or len(exact) == 1 else ""


def gpu_type(hosts: Sequence[Facts], catalogue: Catalogue) -> str:
    """Give the GRES type of the GPUs; empty where the catalogue knows no such GPU."""
    types = {
        next((gpu.gres_type for gpu in catalogue.gpus.values() if is_gpu(name, gpu)), "")
        for name in hosts[0].gpu_names
    }
    return types.pop() if len(types) == 1 else ""


def rdma_of(hosts: Sequence[Facts]) -> StarterRdma | None:
    """Give what the hosts have for RDMA: InfiniBand where there is any, else RoCE with a link."""
    ports = [port for host in hosts for port in host.ports]
    fabric = [port for port in ports if port.link_layer == INFINIBAND]
    if fabric:
        # A second port of an adapter is often left empty: what most hosts use is what counts.
        active = [port for port in fabric if port.active]
        chosen = active or [port for port in fabric if port.waits] or fabric
        speed = max((port.rate_gbit_s or 0 for port in chosen), default=0)
        return StarterRdma("infiniband", devices=_devices(chosen, hosts), speed_gbit_s=speed)
    linked = [port for port in ports if port.link_layer == ETHERNET and port.active]
    usual = {host.default_interface for host in hosts}
    choices = [
        (name not in usual, port.rate_gbit_s or 0, name)
        for port in linked
        for name in port.interfaces
        if is_interface(name)
    ]
    if not choices:
        return None
    best = max((apart, rate) for apart, rate, _ in choices)
    names = Counter(name for apart, rate, name in choices if (apart, rate) == best)
    most = max(names.values())
    return StarterRdma("roce", min(name for name, number in names.items() if number == most))


def _devices(ports: Sequence[Port], hosts: Sequence[Facts]) -> tuple[str, ...]:
    """Name the devices that each host has, and most use."""
    used = Counter(port.hca for port in ports)
    everywhere = set.intersection(*({port.hca for port in host.ports} for host in hosts))
    names = [name for name in used if name in everywhere and 2 * used[name] >= len(hosts)]
    return tuple(sorted(names, key=lambda name: (len(name), name)))


def notes(
    hosts: Sequence[Facts], names: Mapping[str, str], found: Sequence[Candidate], profile: str
) -> Iterator[str]:
    """Say what was found, for comments. No line of it could be taken for a key."""
    what = ", ".join(_distinct(host.product for host in hosts))
    model = ", ".join(_distinct(host.cpu_model for host in hosts))
    who = fold(names[host.target] for host in hosts)
    yield " · ".join(filter(None, (f"As {who} reported", what, model)))
    if gpus := hosts[0].gpu_names:
        listed = ", ".join(f"{number} x {name}" for name, number in gpus.items())
        driver = "" if all(gpu.driver for gpu in hosts[0].gpus) else ", without a driver yet"
        yield f"GPUs · {listed}{driver}"
    memory = sorted({host.memory_mib for host in hosts if host.memory_mib})
    if len(memory) > 1:
        yield f"Memory differs, from {memory[0]} to {memory[-1]} MiB; the least is declared."
    if hcas := hosts[0].hcas:
        listed = ", ".join(f"{number} x {kind} {layer}" for (kind, layer), number in hcas.items())
        yield f"HCAs · {listed}{_links(hosts)}"
    if disks := Counter(disk.kind for disk in hosts[0].disks):
        listed = ", ".join(f"{number} x {kind}" for kind, number in disks.items())
        yield f"Disks · {listed}"
    if not profile and found:
        yield from _proposals(found)


def _links(hosts: Sequence[Facts]) -> str:
    ports = [port for host in hosts for port in host.ports]
    if any(port.active for port in ports):
        return ""
    if any(port.waits for port in ports):
        return "; no subnet manager has been there yet"
    return "; none has a link, and what is said of speed is that of idle ports"


def _proposals(found: Sequence[Candidate]) -> Iterator[str]:
    exact = [candidate.profile.name for candidate in found if candidate.exact]
    if exact:
        yield f"It may be one of these profiles, by what is known: {', '.join(exact[:_NAMED])}"
        return
    nearest = found[0]
    differs = "; ".join(nearest.differs) or "nothing to compare is known of it"
    yield f"The nearest profile is {nearest.profile.name} ({differs})."


def _distinct(words: Iterator[str]) -> list[str]:
    return [word for word in dict.fromkeys(words) if word]
