"""Fabrics: HCAs and rails, and who manages the subnet of InfiniBand."""

from collections.abc import Iterator
from typing import Any

from hpcsite.errors import Problem
from hpcsite.site.draft import Draft
from hpcsite.site.model import Fabric, Switch
from hpcsite.site.names import fold
from hpcsite.site.rdma import DEFAULT_MODE
from hpcsite.site.rules.groups import unknown_groups
from hpcsite.site.sources import KeyPath
from hpcsite.site.topology import plugged_nodes

_MANAGERS = "ib_subnet_manager"
_PRIORITY = "site_subnet_manager_priority"


def hcas_are_those_of_rails(draft: Draft) -> Iterator[Problem]:
    """Check that a fabric that lists HCAs has one for each rail, each once."""
    for name, fabric in draft.keys.fabrics.items():
        path: KeyPath = ("site_fabrics", name, "hcas")
        seen: set[str] = set()
        for number, hca in draft.numbered(path, fabric.hcas):
            if hca in seen:
                yield draft.problem(
                    f"the fabric {name} has {hca} twice",
                    (*path, number),
                    "write the device of each rail once; `rdma link` on a node lists them",
                    code="HPC1351",
                )
            seen.add(hca)
        if (
            not fabric.hcas
            or not _is_whole(draft, path)
            or not _is_whole(draft, (*path[:2], "rails"))
        ):
            continue
        if len(fabric.hcas) != fabric.rails:
            yield draft.problem(
                f"the fabric {name} has {fabric.rails} rails, and {len(fabric.hcas)} HCAs",
                path,
                "list the device of each rail, or correct rails",
                code="HPC1350",
            )


def devices_are_hcas(draft: Draft) -> Iterator[Problem]:
    """Doubt RDMA devices of hosts that no fabric of their kind has."""
    hcas: dict[bool, set[str]] = {True: set(), False: set()}
    for fabric in draft.keys.fabrics.values():
        hcas[fabric.kind == "infiniband"].update(fabric.hcas)
    odd: dict[str, list[str]] = {}
    for host in _rdma_hosts(draft):
        variables = draft.inventory.hosts[host]
        known = hcas[_mode(variables) == "infiniband"]
        devices = variables.get("rdma_devices")
        for device in devices if known and isinstance(devices, list) else ():
            if str(device) not in known and _mode(variables) in ("infiniband", "roce"):
                odd.setdefault(str(device), []).append(host)
    for device, hosts in odd.items():
        yield draft.problem(
            f"{device} of {fold(hosts)} is no HCA of a fabric",
            ("rdma_devices",),
            "correct rdma_devices, or hcas in site_fabrics",
            hosts[0],
            code="HPC1352",
        )


def subnets_are_managed(draft: Draft) -> Iterator[Problem]:
    """Check that each InfiniBand fabric has a subnet manager, and no other fabric names one."""
    hosts = draft.inventory.groups.get(_MANAGERS) or _MANAGERS in unknown_groups(draft).values()
    sure = draft.is_whole("switches", "fabric", "managed")
    for name, fabric in draft.keys.fabrics.items():
        switches = [each for each in draft.keys.switches.values() if each.fabric == name]
        path = ("site_fabrics", name)
        if fabric.subnet_manager and fabric.kind not in (None, "infiniband"):
            yield draft.problem(
                f"the fabric {name} is {fabric.kind}, which has no subnet manager",
                (*path, "subnet_manager"),
                "remove subnet_manager, or correct kind",
                code="HPC1355",
            )
        elif (
            fabric.kind == "infiniband" and sure and not _is_managed(fabric, switches, bool(hosts))
        ):
            what = {
                "host": "no host is in ib_subnet_manager",
                "managed_switch": "no switch is managed",
            }
            why = what.get(fabric.subnet_manager or "", "no host, and no switch that is managed")
            yield draft.problem(
                f"nothing manages the subnet of the InfiniBand fabric {name}: {why}",
                (*path, "subnet_manager") if fabric.subnet_manager else path,
                "put two hosts into ib_subnet_manager, or set `managed: true` for a switch of the "
                "fabric",
                code="HPC1353",
            )


def subnets_are_known(draft: Draft) -> Iterator[Problem]:
    """Doubt InfiniBand of which neither fabric nor subnet manager is described."""
    kinds = [fabric.kind for fabric in draft.keys.fabrics.values()]
    described = "infiniband" in kinds or None in kinds or not draft.is_whole("fabrics", "kind")
    if described or draft.inventory.groups.get(_MANAGERS):
        return
    hosts = draft.inventory.hosts
    found = [host for host in _rdma_hosts(draft) if _mode(hosts[host]) == "infiniband"]
    if found and _MANAGERS not in unknown_groups(draft).values():
        yield draft.group_problem(
            f"InfiniBand without a known subnet manager: {fold(found)}",
            "rdma",
            "describe the fabric in site_fabrics, and who manages its subnet",
            code="HPC1356",
        )


def managers_have_infiniband(draft: Draft) -> Iterator[Problem]:
    """Check that subnet managers run where the fabric is."""
    managers = draft.inventory.groups.get(_MANAGERS, frozenset())
    reached = {h for h in _rdma_hosts(draft) if _mode(draft.inventory.hosts[h]) == "infiniband"}
    # Without any host in rdma, that is what the group needs, and is said of the group.
    if draft.inventory.groups.get("rdma") and (without := sorted(managers - reached)):
        yield draft.group_problem(
            f"subnet managers without InfiniBand: {fold(without)}",
            _MANAGERS,
            "put each into rdma with `rdma_mode: infiniband`, or take it out",
            code="HPC1357",
        )


def priorities_are_distinct(draft: Draft) -> Iterator[Problem]:
    """Check that it is decided which of several subnet managers of a fabric is master."""
    managers = draft.inventory.groups.get(_MANAGERS, frozenset())
    subnets = {
        name: plugged_nodes(draft.keys.switches, name)
        for name, fabric in draft.keys.fabrics.items()
        if fabric.kind == "infiniband"
    }
    first: dict[tuple[object, frozenset[str]], str] = {}
    for host in draft.inventory.hosts:
        if host not in managers:
            continue
        priority = draft.inventory.hosts[host].get(_PRIORITY)
        # With several fabrics, only those that are plugged into the same one meet.
        mine = frozenset(name for name, nodes in subnets.items() if host in nodes)
        other = first.setdefault((priority, mine if len(subnets) > 1 else frozenset()), host)
        if other != host:
            told = "no priority" if priority is None else f"the priority {priority}"
            yield draft.problem(
                f"the subnet managers {other} and {host} both have {told}",
                (_PRIORITY,),
                f"set {_PRIORITY} of each, the highest for the one that is to be master",
                host,
                code="HPC1354",
            )


def _is_managed(fabric: Fabric, switches: list[Switch], hosts: bool) -> bool:  # noqa: FBT001
    by_switch = any(switch.managed for switch in switches)
    if fabric.subnet_manager == "managed_switch":
        # Of switches that are not described there is nothing to know.
        return by_switch or not switches
    return hosts or (by_switch and fabric.subnet_manager is None)


def _rdma_hosts(draft: Draft) -> list[str]:
    members = draft.inventory.groups.get("rdma", frozenset())
    return [host for host in draft.inventory.hosts if host in members]


def _mode(variables: dict[str, Any]) -> str:
    return str(variables.get("rdma_mode") or DEFAULT_MODE)


def _is_whole(draft: Draft, path: KeyPath) -> bool:
    """Whether nothing is wrong at a path or below it."""
    return not any(wrong[: len(path)] == path for wrong in draft.invalid)


RULES = (
    hcas_are_those_of_rails,
    devices_are_hcas,
    subnets_are_managed,
    subnets_are_known,
    managers_have_infiniband,
    priorities_are_distinct,
)
