"""Asking Slurm for the cluster: once when a run begins, and again after something went wrong."""

from collections.abc import Iterable
from dataclasses import replace

from hpcsite.errors import CouldNotRunError
from hpcsite.site.model import Host, Site
from hpcsite.site.names import fold
from hpcsite.slurm.node_records import (
    SlurmOutputError,
    read_config,
    read_nodes,
    read_up_partitions,
)
from hpcsite.verify import contact
from hpcsite.verify.cluster import Cluster
from hpcsite.verify.context import Core
from hpcsite.verify.evidence import Evidence
from hpcsite.verify.transport import UnreachableError

# scontrol has no --json in Slurm 22.05, where squeue and sacct do.
_SCRIPT = '"$0" "$@" --json 2>/dev/null || exec "$0" "$@" --oneliner'


def scontrol_show(what: str, names: Iterable[str] = ()) -> list[str]:
    """Return a command that shows nodes or partitions, as JSON where scontrol can."""
    chosen = fold(names)
    return ["sh", "-c", _SCRIPT, "scontrol", "show", what, *([chosen] if chosen else [])]


def measure_cluster(core: Core, evidence: Evidence) -> Cluster:
    """Ask Slurm for its nodes, partitions and configuration, and the nodes whether they answer.

    Raises `CouldNotRunError`.
    """
    config = read_config(_ask(core, evidence, "config", ["scontrol", "show", "config"]))
    nodes, partitions = (
        _ask(core, evidence, what, scontrol_show(what)) for what in ("nodes", "partitions")
    )
    try:
        cluster = Cluster(
            core.site,
            read_nodes(nodes),
            read_up_partitions(partitions),
            config,
            core.options.partition,
        )
    except SlurmOutputError as error:
        version = config.get("SLURM_VERSION", "of unknown version")
        raise CouldNotRunError(
            f"the nodes of Slurm {version} cannot be read: {error}",
            hint=f"hpcsite verifies Slurm 22.05 and newer; see {core.folder}/raw/run",
        ) from error
    try:
        return replace(cluster, silent=contact.silent(core, cluster, evidence))
    except UnreachableError as error:
        raise CouldNotRunError(f"cannot reach {error}", hint="try again") from error


def refreshed(core: Core, cluster: Cluster) -> Cluster:
    """Return the cluster with its nodes as they are now; as it was, if Slurm does not say."""
    evidence = Evidence(core.folder, "run")
    try:
        return replace(
            cluster,
            nodes=read_nodes(_ask(core, evidence, "nodes-again", scontrol_show("nodes"))),
        )
    except (CouldNotRunError, SlurmOutputError):
        return cluster


def _ask(core: Core, evidence: Evidence, what: str, argv: list[str]) -> str:
    try:
        answer = core.transport.run(core.host, argv, user=core.user, timeout_s=30)
    except UnreachableError as error:
        raise CouldNotRunError(f"cannot reach {error}", hint="try again") from error
    evidence.record(answer, what)
    if not answer.ok:
        raise CouldNotRunError(
            f"Slurm does not answer on {core.host.name}: {answer.complaint}",
            hint=f"look at `systemctl status {_daemons(core.site)}`, and at the journal there",
        )
    return answer.stdout


def _daemons(site: Site) -> str:
    controllers: tuple[Host, ...] = site.in_group("slurm_controller")
    return f"slurmctld` on `{controllers[0].name}" if controllers else "slurmctld"
