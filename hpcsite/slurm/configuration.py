"""From inventory, evidence and the standing file to the controller's configuration.

The controller's own slurm.conf is the store of what earlier runs measured, so that a run over one
new node needs nothing from the others (docs/adr/0004-slurm-configuration.md). Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hpcsite.site.model import SiteKeys
from hpcsite.slurm.conf import SlurmConf, parse_slurm_conf
from hpcsite.slurm.hardware import (
    Candidate,
    Machine,
    Tracking,
    contract_problem,
    machine_of,
)
from hpcsite.slurm.parameters import check_parameters
from hpcsite.slurm.render import (
    Controller,
    Node,
    Paths,
    render_cgroup_conf,
    render_gres_conf,
    render_slurm_conf,
)


@dataclass(frozen=True)
class Configuration:
    """The three files, and what is to be said of nodes."""

    slurm_conf: str
    gres_conf: str
    cgroup_conf: str
    problems: dict[str, str] = field(default_factory=dict)
    """Node → why it is left out, or kept as it was and drained."""
    drain: tuple[str, ...] = ()
    """Nodes that have a line and a problem."""
    sound: tuple[str, ...] = ()
    """Nodes that were measured in this run and keep their contract."""


def configure(
    keys: SiteKeys,
    controller: Controller,
    paths: Paths,
    candidates: Sequence[Candidate],
    standing: str = "",
    version: str = "",
) -> Configuration:
    """Make the configuration of a site's controller.

    `standing` is the slurm.conf that the controller has now, empty where it has none;
    `version` is what `slurmctld -V` prints. Raises `InvalidSiteError` for parameters that a
    site may not set.
    """
    check_parameters(keys)
    before = parse_slurm_conf(standing)
    tracking = choose_tracking(keys, candidates, before)
    nodes: list[Node] = []
    problems: dict[str, str] = {}
    for candidate in candidates:
        machine, problem = _resolve(keys, candidate, before, tracking)
        if problem:
            problems[candidate.name] = problem
        if machine:
            nodes.append(Node(candidate.name, candidate.address, candidate.group, machine))
    listed = {node.name for node in nodes}
    return Configuration(
        slurm_conf=render_slurm_conf(keys, controller, paths, nodes, tracking),
        gres_conf=render_gres_conf(nodes, keys.node_groups),
        cgroup_conf=render_cgroup_conf(tracking, version),
        problems=problems,
        drain=tuple(name for name in problems if name in listed),
        sound=tuple(
            c.name for c in candidates if c.evidence and c.name in listed - problems.keys()
        ),
    )


def choose_tracking(keys: SiteKeys, candidates: Sequence[Candidate], before: SlurmConf) -> Tracking:
    """How Slurm tracks processes: the site's word, or with `auto` what every node can.

    A run over some of the nodes keeps what stands: one node must not turn the whole site over.
    """
    if keys.slurm_process_tracking != "auto":
        return keys.slurm_process_tracking
    measured = [c.evidence for c in candidates if c.evidence and not c.evidence.problem]
    standing = before.keys.get("proctracktype", "")
    if len(measured) < len(candidates) and standing:
        return "cgroup" if standing == "proctrack/cgroup" else "linuxproc"
    return "cgroup" if measured and all(e.can_cgroup for e in measured) else "linuxproc"


def _resolve(
    keys: SiteKeys, node: Candidate, before: SlurmConf, tracking: Tracking
) -> tuple[Machine | None, str]:
    """Find the hardware of a node's line, if it gets one, and what is wrong with the node."""
    group = keys.node_groups.get(node.group)
    if group is None:
        return None, f"{node.name} is left out of Slurm: it belongs to no node group"
    line = before.nodes.get(node.name)
    standing = Machine.of_line(line) if line else None
    if problem := contract_problem(node, group, tracking):
        return standing, problem
    machine = machine_of(node, group, standing)
    if machine is None:
        return None, (
            f"{node.name} is left out of Slurm: its hardware is neither declared in node group "
            f"{node.group} nor measured"
        )
    return machine, ""
