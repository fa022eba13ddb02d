"""Checks `node/versions` and `node/settings`: hosts that should be alike are, and are as pinned."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from ipaddress import AddressValueError, IPv4Address

from hpcsite.site.model import Site
from hpcsite.verify import survey
from hpcsite.verify.context import Context
from hpcsite.verify.engine import Check
from hpcsite.verify.findings import Finding, Tally
from hpcsite.verify.parsers.facts import Facts, Net
from hpcsite.verify.suites import needs
from hpcsite.verify.survey import Survey
from hpcsite.verify.uniform import Uniformity, blamed, judge

_SERVED_BY_SLURM = frozenset(("slurm_compute", "slurm_controller", "slurm_login", "slurm_dbd"))
_RUN_PROGRAMS = frozenset(("slurm_compute", "slurm_login"))
_REMEDY = (
    "compare {nodes} with a node that is right (the properties name both), bring it to the site's "
    "stack by a deploy, and reboot it where the kernel or a driver is what differs"
)
_SETTINGS_REMEDY = (
    "look at {nodes}: firmware settings, /etc/sysctl.d, the kernel's command line and the "
    "interface's MTU against those of a node that is right"
)


class Among(Enum):
    """Which hosts are held against each other."""

    ALL = "all hosts"
    # Others (a database, a file server) have neither Slurm nor munge.
    SLURM = "hosts of Slurm's groups"
    PROGRAMS = "compute and login nodes"
    GROUP = "compute nodes of one group"


@dataclass(frozen=True)
class Held:
    """Something that hosts say, and among whom it is the same. `pin` is a key of site_software."""

    name: str
    among: Among
    pin: str = ""
    exact: bool = False
    required: bool = False
    of: Callable[[Facts], str] | None = None

    def value(self, facts: Facts) -> str:
        """Return what a host says; empty for nothing."""
        return self.of(facts) if self.of else facts.values.get(self.name, "")


def _runtimes(facts: Facts) -> str:
    found = sorted((k, v) for k, v in facts.values.items() if k.startswith("runtime."))
    return ", ".join(f"{key.removeprefix('runtime.')} {value}" for key, value in found)


def parts(kind: str) -> Callable[[Facts], str]:
    """Return what a host says of several devices: `2x MT_0000000838 28.39.1002`."""

    def of(facts: Facts) -> str:
        known = facts.parts.get(kind, {})
        return ", ".join(f"{count}x {part}" for part, count in sorted(known.items()))

    return of


def _prefixed(prefix: str) -> Callable[[Facts], str]:
    def of(facts: Facts) -> str:
        found = sorted((k, v) for k, v in facts.values.items() if k.startswith(prefix))
        return ", ".join(f"{key.removeprefix(prefix)}: {value}" for key, value in found)

    return of


def _swap(facts: Facts) -> str:
    if "swap_kib" not in facts.values:
        return ""
    return "on" if facts.number("swap_kib") else "off"


SOFTWARE = (
    Held("os", Among.ALL, required=True),
    Held("kernel", Among.ALL, pin="kernel", exact=True, required=True),
    Held("slurm", Among.SLURM, pin="slurm", required=True),
    Held("munge", Among.SLURM, required=True),
    Held("nvidia_driver", Among.GROUP, pin="nvidia_driver"),
    Held("fabric_manager", Among.GROUP),
    Held("cuda", Among.GROUP, pin="cuda"),
    Held("nccl", Among.GROUP, pin="nccl"),
    Held("dcgm", Among.GROUP, pin="dcgm"),
    Held("ofed", Among.GROUP),
    Held("mpi", Among.PROGRAMS, pin="openmpi"),
    Held("ucx", Among.PROGRAMS, pin="ucx"),
    Held("container_runtime", Among.GROUP, of=_runtimes),
)
# Pins of what only nodes with real GPUs have.
_OF_GPUS = frozenset(("nvidia_driver", "cuda", "nccl", "dcgm"))
_SYSCTLS = (
    "vm/swappiness",
    "vm/overcommit_memory",
    "vm/zone_reclaim_mode",
    "vm/max_map_count",
    "kernel/numa_balancing",
    "kernel/pid_max",
    "net/core/rmem_max",
    "net/core/wmem_max",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_wmem",
    "net/ipv4/tcp_congestion_control",
)
SETTINGS = (
    *(
        Held(name, Among.GROUP)
        for name in (
            "product_name",
            "bios_version",
            "bios_date",
            "model name",
            "sockets",
            "cores",
            "cpus",
            "microcode",
            "smt",
            "numa_nodes",
            "governor",
            "cpufreq_driver",
            "no_turbo",
            "boost",
            "iommu",
            "clocksource",
            "transparent_hugepages",
        )
    ),
    Held("hugepages", Among.GROUP, of=_prefixed("hugepages.")),
    Held("swap", Among.GROUP, of=_swap),
    Held("hca_firmware", Among.GROUP, of=parts("hca")),
    Held("nvme_firmware", Among.GROUP, of=parts("nvme")),
    *(Held(f"sysctl.{name}", Among.GROUP) for name in _SYSCTLS),
)


def find_versions(context: Context) -> Finding:
    """Software over all hosts, against the site's pins and against each other."""
    found = survey.survey(context)
    return _finding(found, software(context.site, found.facts), _REMEDY)


def find_settings(context: Context) -> Finding:
    """Firmware, kernel settings and interfaces of nodes that should be alike."""
    found = survey.survey(context)
    return _finding(found, settings(context.site, found.facts), _SETTINGS_REMEDY)


def _finding(found: Survey, judged: Uniformity, remedy: str) -> Finding:
    tally = Tally(judged.said, [*judged.unknown, *found.failed.values(), *found.unknown.values()])
    if not judged.properties and not tally.unknown:
        tally.unknown.append("no host said anything that can be compared")
    culprits = blamed(judged.odd)
    named = ",".join(culprit.name for culprit in culprits)
    left = ", ".join(judged.not_read)
    return tally.finding(
        found.facts,
        reason=f"no host has, or tells: {left}" if left else "",
        properties=judged.properties,
        culprits=culprits,
        remedy=remedy.format(nodes=named) if culprits else "",
    )


def software(site: Site, facts: Mapping[str, Facts]) -> Uniformity:
    """Judge versions. A pin of GPU software holds where there are GPUs that are no lab's."""
    found = Uniformity()
    for held in SOFTWARE:
        for label, hosts in _peers(site, facts, held.among):
            pin = str(getattr(site.keys.software, held.pin) or "") if held.pin else ""
            if held.name in _OF_GPUS and not _real_gpus(site, hosts):
                pin = ""
            _judge(found, held, label, {host: facts[host] for host in hosts}, pin)
    return found


def settings(site: Site, facts: Mapping[str, Facts]) -> Uniformity:
    """Judge settings of each group's nodes, and the interfaces in each network."""
    found = Uniformity()
    for held in SETTINGS:
        for label, hosts in _peers(site, facts, held.among):
            _judge(found, held, label, {host: facts[host] for host in hosts})
    _judge_networks(site, facts, found)
    return found


def _judge(
    found: Uniformity, held: Held, label: str, facts: Mapping[str, Facts], pin: str = ""
) -> None:
    name = f"{held.name} ({label})" if label else held.name
    said = {host: held.value(known) for host, known in facts.items()}
    found.add(name, judge(name, said, pin=pin, exact=held.exact, required=held.required))


def _peers(site: Site, facts: Mapping[str, Facts], among: Among) -> Iterable[tuple[str, list[str]]]:
    """Return sets of hosts that are held against each other, each with a word where several are."""
    wanted = {Among.SLURM: _SERVED_BY_SLURM, Among.PROGRAMS: _RUN_PROGRAMS}
    if among is not Among.GROUP:
        groups = wanted.get(among)
        hosts = [h for h in facts if groups is None or site.hosts[h].groups & groups]
        return [("", hosts)] if hosts else []
    by_group: dict[str, list[str]] = {}
    for host in facts:
        if "slurm_compute" in site.hosts[host].groups:
            by_group.setdefault(site.node_group_of(site.hosts[host]) or "", []).append(host)
    return [(group if len(by_group) > 1 else "", hosts) for group, hosts in by_group.items()]


def _real_gpus(site: Site, hosts: Iterable[str]) -> bool:
    groups = (site.node_group_of(site.hosts[host]) for host in hosts)
    known = [site.keys.node_groups[group] for group in groups if group]
    return any(group.gpus and not group.virtual for group in known)


def _judge_networks(site: Site, facts: Mapping[str, Facts], found: Uniformity) -> None:
    """Hold the MTU equal on all of a network, and an interface's speed in a node group."""
    networks = {"cluster": None, **site.keys.networks}
    for name, network in networks.items():
        nets = {
            host: [net for net in known.nets if _in_network(site, host, net, name)]
            for host, known in facts.items()
        }
        on_it = {host: mine for host, mine in nets.items() if mine}
        if not on_it:
            continue
        pin = str(network.mtu) if network and network.mtu else ""
        mtus = {host: _each({net.mtu for net in mine}) for host, mine in on_it.items()}
        found.add(f"mtu of {name}", judge(f"mtu of {name}", mtus, pin=pin, exact=True))
        for label, hosts in _peers(site, {host: facts[host] for host in on_it}, Among.GROUP):
            title = f"speed of {name}, Mb/s" + (f" ({label})" if label else "")
            speeds = {
                host: _each(net.speed_mbit_s for net in on_it[host] if net.speed_mbit_s)
                for host in hosts
            }
            found.add(title, judge(title, speeds))


def _each(numbers: Iterable[int]) -> str:
    return ", ".join(str(number) for number in sorted(numbers))


def _in_network(site: Site, host: str, net: Net, name: str) -> bool:
    try:
        address = IPv4Address(net.address)
    except AddressValueError:
        return False
    inside = [one for one, network in site.keys.networks.items() if address in network.subnet]
    if inside:
        return name in inside
    return name == "cluster" and site.hosts[host].address == net.address


VERSIONS = Check(
    "node",
    "versions",
    "Hosts have the same software, as the site pins it: system, kernel, Slurm, drivers, MPI.",
    find_versions,
    (needs.compute_nodes(1),),
    needs.light_on_all,
)
SETTINGS_CHECK = Check(
    "node",
    "settings",
    "Nodes of a group have the same firmware and kernel settings, hosts of a network one MTU.",
    find_settings,
    (needs.compute_nodes(1),),
    needs.light_on_all,
)
CHECKS = (VERSIONS, SETTINGS_CHECK)
