"""From inventory, evidence and the standing file to the controller's configuration.

The controller's own slurm.conf is the store of what earlier runs measured, so that a run over one
new node needs nothing from the others (docs/adr/0004-slurm-configuration.md). Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hpcsite.errors import InvalidSiteError, Problem
from hpcsite.site.model import SiteKeys
from hpcsite.slurm.cluster import Controller, Node, Paths
from hpcsite.slurm.conf import SlurmConf, fold, parse_slurm_conf
from hpcsite.slurm.gres import GroupGres, gres_problems
from hpcsite.slurm.hardware import (
    Candidate,
    Machine,
    Tracking,
    contract_problem,
    machine_of,
)
from hpcsite.slurm.parameters import check_parameters
from hpcsite.slurm.release import release
from hpcsite.slurm.render import render_slurm_conf
from hpcsite.slurm.render_cgroup import render_cgroup_conf
from hpcsite.slurm.render_gres import render_gres_conf
from hpcsite.slurm.topology_conf import Tree, render_topology_conf

# The first release with the plugin cgroup/v2 (its release notes). hpcsite sets up no cgroup v1.
CGROUP_V2 = (22, 5)


@dataclass(frozen=True)
class Configuration:
    """The files, and what is to be said of nodes. An empty topology.conf is none."""

    slurm_conf: str
    gres_conf: str
    cgroup_conf: str
    topology_conf: str = ""
    problems: dict[str, str] = field(default_factory=dict)
    """Node → why it is left out, or kept as it was and drained."""
    drain: tuple[str, ...] = ()
    """Nodes that have a line and a problem."""
    sound: tuple[str, ...] = ()
    """Nodes that were measured in this run and keep their contract."""
    outside: tuple[str, ...] = ()
    """Nodes with a problem that this run did not measure: no task of theirs tells it."""
    removed: tuple[str, ...] = ()
    """Nodes that lose the line which they have: slurmctld would end their jobs."""
    standing_state_dir: str = ""
    """Where the standing file has slurmctld keep its jobs; by default where slurm.conf(5) says."""

    @property
    def files(self) -> dict[str, str]:
        """Text by the name of the file, in the order in which they are written."""
        files = {
            "slurm.conf": self.slurm_conf,
            "gres.conf": self.gres_conf,
            "cgroup.conf": self.cgroup_conf,
            "topology.conf": self.topology_conf,
        }
        return {name: text for name, text in files.items() if text}


def configure(
    keys: SiteKeys,
    controller: Controller,
    paths: Paths,
    candidates: Sequence[Candidate],
    standing: str = "",
    version: str = "",
    tree: Tree | None = None,
) -> Configuration:
    """Make the configuration of a site's controller.

    `keys` has in its node groups what their hardware profiles fill in. `standing` is the slurm.conf
    that the controller has now, empty where it has none; `version` is what `slurmctld -V` prints;
    `tree` are the switches of all compute nodes, for a site that has a topology. Raises
    `InvalidSiteError` for parameters that a site may not set, for what this release cannot do, and
    for a standing file from which the lines of nodes outside of the run cannot be kept.
    """
    check_parameters(keys, version)
    if refused := gres_problems(keys.node_groups):
        raise InvalidSiteError(refused)
    before = parse_slurm_conf(standing)
    _check_includes(before)
    tracking = choose_tracking(keys, candidates, before, version)
    gres = {name: GroupGres(group) for name, group in keys.node_groups.items()}
    nodes: list[Node] = []
    problems: dict[str, str] = {}
    for candidate in candidates:
        machine, problem = _resolve(keys, candidate, before, tracking, gres)
        if problem:
            problems[candidate.name] = problem
        if machine:
            nodes.append(Node(candidate.name, candidate.address, candidate.group, machine))
    listed = {node.name for node in nodes}
    _check_kept(candidates, before, listed)
    topology = render_topology_conf(keys.topology, tree, listed)
    return Configuration(
        slurm_conf=render_slurm_conf(
            keys, controller, paths, nodes, tracking, topology=bool(topology)
        ),
        gres_conf=render_gres_conf(nodes, keys.node_groups),
        cgroup_conf=render_cgroup_conf(tracking, version, keys.slurm_cgroup_parameters),
        topology_conf=topology,
        problems=problems,
        drain=tuple(name for name in problems if name in listed),
        sound=tuple(
            c.name for c in candidates if c.evidence and c.name in listed - problems.keys()
        ),
        outside=tuple(c.name for c in candidates if c.evidence is None and c.name in problems),
        removed=tuple(name for name in before.nodes if name not in listed),
        standing_state_dir=before.keys.get("statesavelocation", "/var/spool"),
    )


def choose_tracking(
    keys: SiteKeys, candidates: Sequence[Candidate], before: SlurmConf, version: str = ""
) -> Tracking:
    """How Slurm tracks processes: the site's word, or with `auto` what every node can.

    A run over some of the nodes keeps what stands: one node must not turn the whole site over.
    Raises `InvalidSiteError` where the site wants cgroups of a release that has only version 1.
    """
    if release(version) < CGROUP_V2:
        if keys.slurm_process_tracking == "cgroup":
            problem = f"site_slurm_process_tracking is cgroup, but {version} has no cgroup v2"
            hint = "set it to linuxproc or auto, or use Slurm 22.05 or later"
            raise InvalidSiteError([Problem(problem, hint=hint)])
        return "linuxproc"
    if keys.slurm_process_tracking != "auto":
        return keys.slurm_process_tracking
    measured = [c.evidence for c in candidates if c.evidence and not c.evidence.problem]
    standing = before.keys.get("proctracktype", "")
    if len(measured) < len(candidates) and standing:
        return "cgroup" if standing == "proctrack/cgroup" else "linuxproc"
    return "cgroup" if measured and all(e.can_cgroup for e in measured) else "linuxproc"


def _check_includes(before: SlurmConf) -> None:
    if before.includes:
        files = ", ".join(before.includes)
        problem = (
            f"the controller's slurm.conf includes {files}: hpcsite writes one whole file, and "
            "does not see what stands in others"
        )
        hint = "put the included lines in the place of each include, then deploy again"
        raise InvalidSiteError([Problem(problem, hint=hint)])


def _check_kept(candidates: Sequence[Candidate], before: SlurmConf, listed: set[str]) -> None:
    """Hold that a node outside of the run keeps the line that it has."""
    lost = [c.name for c in candidates if c.evidence is None and c.name in before.nodes]
    if lost := [name for name in lost if name not in listed]:
        problem = (
            f"{fold(lost)} would lose the line in the controller's slurm.conf: it does not say how "
            "many CPUs and how much memory there are, and this run did not measure it"
        )
        hint = "deploy while these nodes are up and without --limit, or declare their hardware"
        raise InvalidSiteError([Problem(problem, hint=hint)])


def _resolve(
    keys: SiteKeys,
    node: Candidate,
    before: SlurmConf,
    tracking: Tracking,
    gres: Mapping[str, GroupGres],
) -> tuple[Machine | None, str]:
    """Find the hardware of a node's line, if it gets one, and what is wrong with the node."""
    group = keys.node_groups.get(node.group)
    if group is None:
        return None, f"{node.name} is left out of Slurm: it belongs to no node group"
    line = before.nodes.get(node.name)
    standing = Machine.of_line(line) if line else None
    if problem := contract_problem(node, group, tracking):
        return standing, problem
    machine = machine_of(node, group, standing, gres[node.group].of(node.name))
    if machine is None:
        return None, (
            f"{node.name} is left out of Slurm: its hardware is neither declared in node group "
            f"{node.group} nor measured"
        )
    return machine, ""
