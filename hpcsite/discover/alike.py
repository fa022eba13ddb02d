"""Which hosts are built alike, and in what a host differs from those that are named as it is."""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

from hpcsite.discover.facts import Facts
from hpcsite.site.names import fold

# What firmware and kernel keep of the memory differs a little between machines that are alike.
MEMORY_SHARE = 0.01


def alike(hosts: Iterable[Facts]) -> list[tuple[Facts, ...]]:
    """Group hosts with the same CPUs, GPUs and HCAs, and memory within 1 %; the largest first."""
    built: dict[Hashable, list[Facts]] = {}
    for host in hosts:
        key = (host.cpus, *(frozenset(each.items()) for each in (host.gpu_names, host.hcas)))
        built.setdefault(key, []).append(host)
    groups = [group for same in built.values() for group in _by_memory(same)]
    return sorted(groups, key=len, reverse=True)


def _by_memory(hosts: list[Facts]) -> Iterator[tuple[Facts, ...]]:
    """Split hosts where the memory grows by more than 1 % of the least; their order is kept."""
    first: dict[int, int] = {}
    least = 0
    for memory in sorted({host.memory_mib or 0 for host in hosts}):
        if memory > least * (1 + MEMORY_SHARE) or not first:
            least = memory
        first[memory] = least
    split: dict[int, list[Facts]] = {}
    for host in hosts:
        split.setdefault(first[host.memory_mib or 0], []).append(host)
    yield from (tuple(group) for group in split.values())


def differences(hosts: Sequence[Facts], names: Mapping[str, str]) -> list[tuple[str, str]]:
    """Say of hosts whose names differ in numbers only what not all of them have.

    `names` are the hosts' names by their targets. Gives pairs of folded names and what is said.
    """
    families: dict[str, list[Facts]] = {}
    for host in hosts:
        families.setdefault(re.sub(r"\d+", "", names[host.target]), []).append(host)
    said: list[tuple[str, str]] = []
    for family in families.values():
        odd: dict[str, list[str]] = {}
        for host, what in _odd(family):
            odd.setdefault(what, []).append(names[host.target])
        said += [(fold(who), what) for what, who in odd.items()]
    return said


def _odd(family: list[Facts]) -> Iterator[tuple[Facts, str]]:
    if len(family) == 1:
        return
    for value_of, describe in _ASPECTS:
        values = [value_of(host) for host in family]
        usual = Counter(values).most_common(1)[0][0]
        for host, value in zip(family, values, strict=True):
            if value != usual and (what := describe(value, usual)):
                yield host, what


def _rather(value: object, usual: object) -> str:
    return f"{value or 'unknown'} rather than {usual or 'unknown'}"


def _cpus(value: object, usual: object) -> str:
    return f"CPUs {_rather(value, usual)}"


def _memory(value: int, usual: int) -> str:
    if not value or not usual:
        return "memory unknown" if usual else ""
    if abs(value - usual) <= usual * MEMORY_SHARE:
        return ""
    return f"{abs(value - usual)} MiB of memory {'more' if value > usual else 'fewer'} ({value})"


def _counted(one: str, many: str) -> Callable[[tuple[str, ...], tuple[str, ...]], str]:
    """Describe things of which there is another number, or that are others."""

    def describe(value: tuple[str, ...], usual: tuple[str, ...]) -> str:
        missing = Counter(usual) - Counter(value)
        further = Counter(value) - Counter(usual)
        number = abs(len(value) - len(usual))
        if number and not (missing and further):
            which = ", ".join(missing or further)
            more = "more" if further else "fewer"
            return f"{number} {one if number == 1 else many} {more} ({len(value)}; {which})"
        return f"{many} are {_listed(value)} rather than {_listed(usual)}"

    return describe


def _listed(things: Iterable[str]) -> str:
    return ", ".join(f"{number} x {thing}" for thing, number in Counter(things).items()) or "none"


def _links(value: frozenset[str], usual: frozenset[str]) -> str:
    """Describe ports that run at another rate, or not at all; missing ones are said as HCAs."""
    ports = {link.partition(" ")[0]: link for link in usual}
    odd = sorted(link for link in value - usual if link.partition(" ")[0] in ports)
    return ", ".join(
        f"{link}, not {ports[link.partition(' ')[0]].split(' ', 1)[1]}" for link in odd
    )


def _links_of(host: Facts) -> frozenset[str]:
    return frozenset(
        f"{port.hca}/{port.number} "
        + (f"at {port.rate_gbit_s} Gb/s" if port.active and port.rate_gbit_s else "not active")
        for port in host.ports
    )


def _mtu_of(host: Facts) -> int:
    mtus = {interface.name: interface.mtu for interface in host.interfaces}
    return mtus.get(host.default_interface) or 0


def _on_bus(value: int, usual: int) -> str:
    verb = "GPU on the PCI bus is" if value == 1 else "GPUs on the PCI bus are"
    return f"{value} {verb} unknown to the driver" if value > usual else ""


def _driverless(host: Facts) -> int:
    return max(0, host.gpus_on_bus - len(host.gpus))


_ASPECTS: tuple[tuple[Callable[[Facts], Hashable], Callable[..., str]], ...] = (
    (lambda host: host.product, lambda value, usual: f"is {_rather(value, usual)}"),
    (lambda host: host.cpus, _cpus),
    (lambda host: host.memory_mib or 0, _memory),
    (lambda host: tuple(sorted(host.gpu_names.elements())), _counted("GPU", "GPUs")),
    (_driverless, _on_bus),
    (
        lambda host: tuple(sorted(f"{kind} {layer}" for kind, layer in host.hcas.elements())),
        _counted("HCA", "HCAs"),
    ),
    (_links_of, _links),
    (
        lambda host: tuple(sorted(disk.kind for disk in host.disks)),
        _counted("disk", "disks"),
    ),
    (_mtu_of, lambda value, usual: f"MTU {_rather(value, usual)}"),
    (lambda host: host.os, lambda value, usual: f"runs {_rather(value, usual)}"),
)
