"""Suite `fabric`: MPI goes over UCX and the RDMA device, which UCX itself must say."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from hpcsite.site.rdma import Rdma
from hpcsite.verify import fabric
from hpcsite.verify.claims import Claim
from hpcsite.verify.cluster import Target, names
from hpcsite.verify.context import Context
from hpcsite.verify.engine import Check
from hpcsite.verify.findings import Finding, NotMeasuredError, Tally
from hpcsite.verify.parsers import ucx
from hpcsite.verify.results import Status
from hpcsite.verify.suites import mpi, needs
from hpcsite.verify.transport import Answer

TRANSPORTS = "rc,ud,self"
# With the backslash it is this transport alone, without those that UCX sets connections up over.
SOFT_TRANSPORTS = r"\rc_verbs,tcp,self"
# In software, on a slow host, the program takes longer than over TCP.
_RUN_S = 120
# UCX ends over an event that a device reports twice (openucx/ucx issue 10432). Soft-RoCE does that
# now and then when a connection is closed, and no site can help it.
_TWICE = "wait_ctx->cb_id == UCS_CALLBACKQ_ID_NULL"
_SOFT_TRIES = 6
# Debian's and the RHEL family's Open MPI are built with UCX or are not: ompi_info lists what is.
_COMPONENTS = """
PATH=$PATH:/usr/lib64/openmpi/bin
command -v ompi_info >/dev/null || { echo missing; exit 0; }
ompi_info --parsable --param pml all 2>/dev/null | grep '^mca:pml:[^:]*:version:"component' || true
"""


def find_ucx(context: Context) -> Finding:
    """See an MPI program over two nodes pass its messages over UCX and the RDMA device."""
    nodes = tuple(fabric.wanted(context))
    known, meant = fabric.links(context), fabric.wanted(context)
    broken = {
        node: why
        for node, links in known.known.items()
        if (why := fabric.missing_port(node, links, meant[node]))
    }
    pair = _pair(context, [node for node in known.known if node not in broken])
    if not pair:
        tally = Tally([*broken.values()], [*known.failed.values(), *known.unknown.values()])
        if not tally.wrong and not tally.unknown:
            tally.unknown.append("no two nodes with RDMA are in one partition")
        return tally.finding(nodes)
    if why := no_ucx(context):
        return Finding(Status.SKIP, why, nodes)
    ports = {t.name: fabric.port_of(known.known[t.name], meant[t.name]).name for t in pair}
    answer, tries = _run(context, pair, ports.values(), [meant[t.name] for t in pair])
    if isinstance(answer, Finding):
        said = ucx.complaint(answer.reason)
        return Finding(answer.status, f"MPI over UCX: {said or answer.reason}", names(pair))
    measured = mpi.read_pingpong(answer.stdout, ",".join(names(pair)))
    tally = Tally([*broken.values()])
    other, silent = proof_faults(answer, ports)
    tally.wrong += other
    tally.unknown += silent
    if fault := mpi.pingpong_fault(measured):
        tally.unknown.append(fault)
    finding = tally.finding(names(pair), measurements=measured)
    if finding.status is Status.PASS and tries > 1:
        return replace(finding, reason=f"at try {tries}: UCX had ended over an event of soft-RoCE")
    return finding


def _run(
    context: Context, pair: Sequence[Target], ports: Iterable[str], meant: Sequence[Rdma]
) -> tuple[Answer | Finding, int]:
    """Run the program, on soft-RoCE again if UCX ended over `_TWICE`; also the number of tries."""
    variables = environment(ports, meant)
    most = _SOFT_TRIES if any(rdma.mode == "soft_roce" for rdma in meant) else 1
    tries = 0
    while True:
        tries += 1
        answer = mpi.run(context, pair, "pingpong", 2, variables, _RUN_S)
        if not isinstance(answer, Finding) or _TWICE not in answer.reason or tries == most:
            return answer, tries


def _pair(context: Context, sound: Sequence[str]) -> tuple[Target, ...]:
    """Return two nodes that one job can span; none if there are no two."""
    by_partition: dict[str, list[Target]] = {}
    for target in fabric.targets(context):
        if target.name in sound:
            by_partition.setdefault(target.partition, []).append(target)
    largest = max(by_partition.values(), key=len, default=[])
    return tuple(largest[:2]) if len(largest) > 1 else ()


def no_ucx(context: Context) -> str:
    """Why Open MPI cannot go over UCX; empty if it can."""
    answer = context.user(["sh", "-c", _COMPONENTS], "components")
    host = context.core.host.name
    if answer.stdout.strip() == "missing":
        return mpi.no_compiler(context)
    if "mca:pml:" not in answer.stdout:
        raise NotMeasuredError(f"ompi_info on {host} lists no pml: {answer.complaint}")
    if "mca:pml:ucx:" not in answer.stdout:
        return f"Open MPI on {host} is built without UCX: ompi_info lists no pml ucx"
    return ""


def environment(ports: Iterable[str], meant: Iterable[Rdma]) -> list[str]:
    """Variables that leave MPI no other way than UCX on these ports (Open MPI's and UCX's FAQ)."""
    devices, soft = list(ports), False
    for rdma in meant:
        if rdma.mode == "soft_roce":
            soft = True
            devices.append(rdma.interface)
    return [
        "OMPI_MCA_pml=ucx",
        # Else Open MPI takes UCX for adapters of one maker only.
        "OMPI_MCA_opal_common_ucx_tls=any",
        "OMPI_MCA_opal_common_ucx_devices=any",
        # UCX sets up a connection over UD, which does not come about between soft-RoCE devices
        # (UCX 1.18, Linux 6.12). Over TCP it does; messages then go over RDMA, as UCX must say.
        f"UCX_TLS={SOFT_TRANSPORTS if soft else TRANSPORTS}",
        f"UCX_NET_DEVICES={','.join(dict.fromkeys(devices))}",
        "UCX_LOG_LEVEL=info",
    ]


def proof_faults(answer: Answer, ports: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Say which nodes went over something else than their RDMA port, and which did not say."""
    said = ucx.lanes(f"{answer.stdout}\n{answer.stderr}")
    other, silent = [], []
    for node, port in ports.items():
        used = said.get(node, set())
        if wrong := sorted(lane for lane in used if lane.partition("/")[2] != port):
            other.append(f"UCX on {node} went over {', '.join(wrong)}, not over {port} alone")
        elif not used:
            silent.append(f"UCX on {node} does not say what it went over")
    return other, silent


def checks(claim: Callable[[Context], Claim]) -> tuple[Check, ...]:
    """Return the check, with what it claims."""
    return (
        Check(
            "fabric",
            "mpi_ucx",
            "MPI messages between two nodes go over UCX and the RDMA device.",
            find_ucx,
            (needs.rdma_nodes(2),),
            claim,
        ),
    )
