"""The NodeName lines of slurm.conf. Pure; the same input gives the same bytes."""

from collections.abc import Mapping, Sequence
from ipaddress import ip_address

from hpcsite.site.model import NodeGroup
from hpcsite.slurm.cluster import Node
from hpcsite.slurm.conf import expand, fold
from hpcsite.slurm.hardware import Machine


def node_lines(nodes: Sequence[Node], groups: Mapping[str, NodeGroup]) -> list[str]:
    """Give each node a place in one line; nodes that are alike share it."""
    shared: dict[tuple[str, str, Machine], list[Node]] = {}
    for node in nodes:
        shared.setdefault((node.group, _network(node.address), node.machine), []).append(node)
    return [
        line
        for (group, _, machine), members in shared.items()
        for line in _lines_of(members, machine, groups[group])
    ]


def _network(address: str) -> str:
    """Nodes fold into one line only within a network, so that their addresses fold with them."""
    return address.rpartition(".")[0] if _is_ip(address) else ""


def _is_ip(address: str) -> bool:
    try:
        ip_address(address)
    except ValueError:
        return False
    return "." in address


def _lines_of(members: list[Node], machine: Machine, group: NodeGroup) -> list[str]:
    rest = _machine_fields(machine, group)
    if len(members) == 1:
        return [_line(members[0], rest)]
    by_name = {node.name: node for node in members}
    names = fold(list(by_name))
    ordered = [by_name[name] for name in expand(names)]
    if not any(map(_has_address, ordered)):
        return [f"NodeName={names} {rest}"]
    # Slurm pairs names and addresses by position, so a folded pair must unfold in the same order.
    addresses = [node.address for node in ordered]
    folded = fold(addresses) if all(map(_is_ip, addresses)) else ""
    if folded and expand(folded) == addresses:
        return [f"NodeName={names} NodeAddr={folded} {rest}"]
    return [_line(node, rest) for node in ordered]


def _line(node: Node, rest: str) -> str:
    address = f" NodeAddr={node.address}" if _has_address(node) else ""
    return f"NodeName={node.name}{address} {rest}"


def _has_address(node: Node) -> bool:
    return node.address not in ("", node.name)


def _machine_fields(machine: Machine, group: NodeGroup) -> str:
    fields = [
        f"CPUs={machine.cpus}",
        f"Sockets={machine.sockets}",
        f"CoresPerSocket={machine.cores_per_socket}",
        f"ThreadsPerCore={machine.threads_per_core}",
        f"RealMemory={machine.real_memory_mib}",
    ]
    if machine.gres:
        fields.append(f"Gres={','.join(map(str, machine.gres))}")
    if group.features:
        fields.append(f"Feature={','.join(group.features)}")
    if group.weight != 1:
        fields.append(f"Weight={group.weight}")
    return " ".join(fields)
