"""Check `storage/throughput`: how fast shared folders are written and read.

fio reads and writes past the node's page cache (O_DIRECT, see open(2) for what NFS makes of it):
what is measured is the network, the server, and for reads the server's memory. No figure is held
against anything here: no reference is known for a lab, and a site has its own.
"""

from collections.abc import Mapping, Sequence

from hpcsite.site.names import fold
from hpcsite.verify.context import Context
from hpcsite.verify.findings import Finding, Tally
from hpcsite.verify.parsers.fio import FioRun
from hpcsite.verify.results import Measurement
from hpcsite.verify.session import Said, step
from hpcsite.verify.suites.storage_coherence import did_it, work_folder
from hpcsite.verify.suites.storage_fio import (
    NO_REFERENCE,
    Load,
    clients,
    fio_runs,
    fitting,
    lead_nodes,
    load_of,
    one_a_file_system,
)
from hpcsite.verify.suites.storage_mounts import Folder, left_out, mounts, shared_folders
from hpcsite.verify.suites.storage_patterns import command, measurement, reached, within_s

# Of the nodes that load a folder at once, those that do so alone before.
_ALONE = 2


def find_throughput(context: Context) -> Finding:
    """Write and read with fio, on nodes alone and on all at once."""
    found = mounts(context)
    folders = one_a_file_system(shared_folders(found, 1))
    tally, steps = Tally(unknown=left_out(found)), []
    most = load_of(context)
    loads = {f.path: fitting(most, f, clients(context, f)) for f in folders}
    for folder in folders:
        load = loads[folder.path]
        work = work_folder(context, folder, "fio")
        steps += throughput_steps(folder, clients(context, folder), work, load)
    session, nodes = lead_nodes(context, found, folders, steps, "throughput", tally)
    measured = []
    for folder in folders:
        ring = clients(context, folder)
        if did_it(folder, session, "make", tally, ring[:1]):
            for key, group in _groups(ring):
                runs = fio_runs(context, folder.path, session, key, group, tally)
                measured += bandwidths(folder, group, runs, loads[folder.path], tally)
    if not measured and not tally.wrong and not tally.unknown:
        tally.unknown.append("no compute node could measure a shared folder")
    return tally.finding(nodes, reason=NO_REFERENCE, measurements=measured)


def _groups(nodes: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Name the loads: some nodes alone, then all at once."""
    alone = [(f"alone {node}", [node]) for node in nodes[:_ALONE]]
    return [*alone, ("at once", list(nodes))] if len(nodes) > 1 else alone


def throughput_steps(folder: Folder, nodes: Sequence[str], work: str, load: Load) -> list[Said]:
    """One fio for all patterns, one after the other, for each group of nodes."""
    steps = [step("make", folder.path, "make", nodes, folder=work, only=[0])]
    for key, group in _groups(nodes):
        only = [nodes.index(node) for node in group]
        more = {"folder": work, "only": only, "timeout_s": within_s(load)}
        steps.append(step("run", folder.path, key, nodes, argv=command(load), **more))
    return steps


def bandwidths(
    folder: Folder, nodes: Sequence[str], runs: Mapping[str, FioRun], load: Load, tally: Tally
) -> list[Measurement]:
    """Sum up what nodes moved; a node that moved nothing is a fault."""
    values = reached(folder.path, runs, tally.wrong, tally.unknown)
    return [
        measurement(name, sum(of.values()), load, export=folder.path, nodes=fold(of))
        for name, of in values.items()
        if len(of) == len(nodes)
    ]
