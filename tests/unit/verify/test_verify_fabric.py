"""Suite `fabric` on recorded output: what passes, what fails and whom it names, what is neither."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from hpcsite.site.model import Host, Site
from hpcsite.verify import fabric
from hpcsite.verify.cluster import Target
from hpcsite.verify.pairs import PairJob, batches
from hpcsite.verify.rdma_limits import bandwidth_reference, latency_reference
from hpcsite.verify.results import Result
from hpcsite.verify.suites import SUITES
from hpcsite.verify.transport import Answer
from tests.unit.verify.fakeslurm import FakeSlurm, Runner, fixture, make_site

LINKS, WRITE_BW, WRITE_LAT, MPI_UCX = SUITES["fabric"]
PAIRS = (WRITE_BW, WRITE_LAT)
ALL = (LINKS, *PAIRS, MPI_UCX)
UP, NONE = fixture("rdma/links.txt"), fixture("rdma/links-none.txt")
BANDWIDTH, LATENCY = fixture("rdma/write-bw.txt"), fixture("rdma/write-lat.txt")
SOFT = {"rdma_mode": "soft_roce", "rdma_interface": "eth1"}
NODES = ("gpu01", "gpu02")
COMPILED = "folder=/tmp/hpcsite-run\n"
CURVE = "latency_us=900.1\nbandwidth 1024 0.001\nbandwidth 4096 0.002\n"
UCX = (
    "[1796.22] [{0}:759  :0]  ucp_worker.c:1903 UCX  INFO  ucp_context_0 self cfg#0 "
    "tag(self/memory rc_verbs/rxe0:1)\n"
    "[1796.23] [{0}:759  :0]  ucp_worker.c:1903 UCX  INFO  ucp_context_0 inter-node cfg#1 "
    "tag(rc_verbs/rxe0:1)\n"
)
PROOF = UCX.format("gpu01") + UCX.format("gpu02")
COMPONENTS = 'mca:pml:ucx:version:"component:5.0.7"\nmca:pml:ob1:version:"component:5.0.7"\n'


def site(variables: dict[str, object] | None = None, nodes: Sequence[str] = NODES) -> Site:
    made = make_site(hosts=("head", "login", *nodes))
    hosts = {
        name: Host(
            name=name,
            groups=host.groups | ({"rdma"} if name in nodes else set()),
            address=name,
            vars=SOFT if variables is None else variables,
        )
        for name, host in made.hosts.items()
    }
    return made.model_copy(update={"hosts": hosts})


def quoted(text: str) -> str:
    return "".join(f"> {line}\n" for line in text.splitlines())


def links(**said: str) -> str:
    return "".join(f"@ {node} 0\n{quoted(text)}" for node, text in said.items())


def side(task: int, node: str, *tests: tuple[str, int], missing: str = "") -> str:
    lines = [f"@ side {'client' if task else 'server'} {node}"]
    lines += [f"@ missing {missing}"] if missing else []
    for number, (text, rc) in enumerate(tests, start=1):
        tool = "ib_write_bw" if number % 2 else "ib_write_lat"
        lines += [f"@ begin {number} {tool}", *text.splitlines(), f"@ end {number} {rc}"]
    return "".join(f"{task}: {line}\n" for line in lines)


def pair(*sides: str, rc: int = 0, error: str = "") -> str:
    errors = "".join(f"! {line}\n" for line in error.splitlines())
    return f"@ gpu01,gpu02 {rc}\n" + "".join(quoted(one) for one in sides) + errors


GOOD = (BANDWIDTH, 0), (LATENCY, 0)
GOOD_PAIR = pair(side(0, "gpu01", *GOOD), side(1, "gpu02", *GOOD))


def slurm(
    said: str = links(gpu01=UP, gpu02=UP),
    met: str | tuple[int, str, str] = GOOD_PAIR,
    program: str | tuple[int, str, str] = CURVE + PROOF,
    components: str = COMPONENTS,
) -> FakeSlurm:
    return FakeSlurm(
        answers={
            "rdma_links.py": said,
            "rdma_pair.py": met,
            "command -v mpicc": COMPILED,
            "ompi_info": components,
            "OMPI_MCA_pml=ucx": program,
        }
    )


def test_all_is_well(run_check: Runner) -> None:
    for check in ALL:
        result = run_check(check, slurm(), site())
        assert result.status == "PASS", (check.name, result.reason)
        assert result.nodes == "gpu[01-02]"


def test_figures_carry_units_and_say_that_soft_roce_has_no_reference(run_check: Runner) -> None:
    result = run_check(WRITE_BW, slurm(), site())
    (one,) = result.measurements
    assert (one.name, one.value, one.unit, one.direction) == (
        "write_bandwidth",
        0.075003,
        "Gb/s",
        "higher",
    )
    assert one.at == {
        "nodes": "gpu01,gpu02",
        "device": "rxe0",
        "message_bytes": 65536,
        "link_gbit_s": 2.5,
    }
    assert one.reference is None
    assert "no reference for soft-RoCE" in result.reason
    latencies = run_check(WRITE_LAT, slurm(), site()).measurements
    assert [(m.name, m.value, m.unit, m.direction) for m in latencies] == [
        ("write_latency", 17932.31, "us", "lower"),
        ("write_latency_min", 693.28, "us", "lower"),
        ("write_latency_p99", 131731.82, "us", "lower"),
    ]


def test_one_job_serves_both_checks_and_names_ports_and_gids(run_check: Runner) -> None:
    fake = slurm()
    run_check(WRITE_BW, fake, site())
    (line,) = [line for line in fake.asked if "rdma_pair.py" in line]
    assert "--nodes=2 --ntasks=2 --ntasks-per-node=1" in line
    assert line.count("-d rxe0 -i 1 -x 1") == 4
    assert "ib_write_lat" in line


@pytest.mark.parametrize("check", ALL, ids=lambda check: check.name)
def test_a_device_that_is_gone_fails_and_names_its_node(run_check: Runner, check: object) -> None:
    """As after `rdma link delete rxe0` on gpu02."""
    fake = slurm(links(gpu01=UP, gpu02=NONE))
    result = run_check(check, fake, site())
    assert result.status == "FAIL"
    assert "gpu02 has no RDMA device rxe0; it has: none" in result.reason
    assert "gpu01 has" not in result.reason
    assert not [line for line in fake.asked if "rdma_pair.py" in line]


@pytest.mark.parametrize("check", ALL, ids=lambda check: check.name)
def test_a_port_that_is_down_fails_and_names_its_node(run_check: Runner, check: object) -> None:
    """As after `ip link set eth1 down` on gpu01."""
    down = UP.replace("4: ACTIVE\t5: LinkUp", "1: DOWN\t3: Disabled")
    result = run_check(check, slurm(links(gpu01=down, gpu02=UP)), site())
    assert result.status == "FAIL"
    assert "gpu01: rxe0:1 is DOWN (Disabled)" in result.reason


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (UP.replace("memlock\tunlimited", "memlock\t8192"), "gpu02: a job may lock 8192 KiB"),
        (UP.replace("\tEthernet\ngid", "\tInfiniBand\ngid"), "gpu02: rxe0:1 is InfiniBand"),
        (UP.replace("RoCE v2", "IB/RoCE v1"), "gpu02: rxe0:1 has no address for RoCE v2 on eth1"),
        (UP.replace("PORT_ACTIVE", "PORT_DOWN"), "gpu02: programs cannot use rxe0"),
        (UP.replace('"state":"ACTIVE"', '"state":"DOWN"'), "`rdma link` says that rxe0:1 is DOWN"),
        (UP.replace("2.5 Gb/sec", "1.2 Gb/sec"), "gpu rxe0:1 is not the same everywhere"),
    ],
)
def test_what_is_wrong_with_links(run_check: Runner, text: str, said: str) -> None:
    result = run_check(LINKS, slurm(links(gpu01=UP, gpu02=text)), site())
    assert result.status == "FAIL"
    assert said in result.reason


@pytest.mark.parametrize("text", ["", "Segmentation fault\n", UP.partition("--- ibv")[0]])
def test_links_that_cannot_be_told_are_an_error(run_check: Runner, text: str) -> None:
    result = run_check(LINKS, slurm(links(gpu01=UP, gpu02=text)), site())
    assert result.status == "ERROR"
    assert "gpu02" in result.reason


REFUSED = "IB device rxe0 not found\n Unable to find the Infiniband/RoCE device\n"
CONNECT = "Couldn't connect to 10.61.4.21:19001\n Unable to init the socket connection\n"


@pytest.mark.parametrize("check", PAIRS, ids=lambda check: check.name)
@pytest.mark.parametrize(
    ("met", "said"),
    [
        (
            pair(side(0, "gpu01", (REFUSED, 1)), side(1, "gpu02", (CONNECT, 1)), rc=3),
            "between gpu01 and gpu02: ib_write_bw on gpu01: IB device rxe0 not found",
        ),
        (
            pair(side(0, "gpu01"), side(1, "gpu02", (CONNECT, 1)), rc=3),
            "ib_write_bw on gpu02: Couldn't connect to 10.61.4.21:19001",
        ),
        (
            pair(
                side(0, "gpu01", (BANDWIDTH, 0)),
                side(1, "gpu02", (BANDWIDTH, 0), ("", 124)),
                rc=3,
            ),
            "ib_write_lat on gpu02: no traffic in time",
        ),
        (
            pair(
                side(0, "gpu01", *GOOD),
                side(1, "gpu02", (BANDWIDTH.replace(": rxe0", ": mlx4_0"), 0), (LATENCY, 0)),
            ),
            "ib_write_bw went over mlx4_0 (IB), not over rxe0 (IB)",
        ),
        (
            pair(
                side(0, "gpu01", *GOOD),
                side(1, "gpu02", (BANDWIDTH.replace("type : IB", "type : IW"), 0), (LATENCY, 0)),
            ),
            "ib_write_bw went over rxe0 (IW), not over rxe0 (IB)",
        ),
        (
            pair(
                side(0, "gpu01", ("ethernet_read_keys: Couldn't read remote address", 1)),
                side(1, "gpu02", (" Completion with error at client\n Failed status 9", 1)),
            ),
            "ib_write_bw on gpu02: Completion with error at client",
        ),
    ],
    ids=["refused", "not-heard", "hangs", "other-device", "other-transport", "broken-off"],
)
def test_a_pair_without_traffic_fails(
    run_check: Runner, check: object, met: str, said: str
) -> None:
    result = run_check(check, slurm(met=met), site())
    assert result.status == "FAIL"
    assert said in result.reason


@pytest.mark.parametrize("check", PAIRS, ids=lambda check: check.name)
@pytest.mark.parametrize(
    ("met", "said"),
    [
        (pair(side(0, "gpu01", missing="ib_write_bw"), side(1, "gpu02")), "gpu01 has no ib_write"),
        (pair(rc=1, error="srun: error: gpu02: no such thing\n"), "did not begin on gpu01 and"),
        (
            pair(rc=1, error="srun: error: Unable to allocate: Requested nodes are busy\n"),
            "nodes busy: gpu[01-02]",
        ),
        (
            pair(side(0, "gpu01", *GOOD), side(1, "gpu02", ("gibberish", 0), ("?", 0))),
            "no results in the output",
        ),
        ((1, "", "ssh broke"), "no answer for gpu01 and gpu02: ssh broke"),
        ("", "no answer for gpu01 and gpu02"),
    ],
    ids=["no-tool", "no-start", "busy", "gibberish", "no-answer", "nothing"],
)
def test_what_was_not_measured_is_an_error(
    run_check: Runner, check: object, met: str, said: str
) -> None:
    result = run_check(check, slurm(met=met), site())
    assert result.status == "ERROR"
    assert said in result.reason


def test_a_floor_holds_where_no_reference_does(run_check: Runner) -> None:
    slow = BANDWIDTH.replace("0.075003", "0.000900")
    met = pair(side(0, "gpu01", *GOOD), side(1, "gpu02", (slow, 0), (LATENCY, 0)))
    result = run_check(WRITE_BW, slurm(met=met), site())
    assert result.status == "FAIL"
    assert "between gpu01 and gpu02: 0.0009 Gb/s over rxe0, at least 0.001" in result.reason


def on_adapters(
    average: str, typical: str, rate: str = "400"
) -> Callable[[Runner, object], Result]:
    """The same pair on 400 Gb/s InfiniBand, with other figures."""
    text = UP.replace("2.5 Gb/sec (1X SDR)\tEthernet", f"{rate} Gb/sec (4X NDR)\tInfiniBand")
    text = text.replace("rxe0", "mlx5_0")
    bandwidth = BANDWIDTH.replace("0.075003", average).replace("rxe0", "mlx5_0")
    latency = LATENCY.replace("693.28", "0.85").replace("17932.31", typical)
    tests = (bandwidth, 0), (latency.replace("rxe0", "mlx5_0"), 0)
    met = pair(side(0, "gpu01", *tests), side(1, "gpu02", *tests))
    fake = slurm(links(gpu01=text, gpu02=text), met)
    return lambda run, check: run(check, fake, site({"rdma_mode": "infiniband"}))


def test_adapters_are_held_against_their_link(run_check: Runner) -> None:
    for check in PAIRS:
        result = on_adapters("396.1", "2.10")(run_check, check)
        assert (result.status, result.reason) == ("PASS", "")
        (first, *_) = result.measurements
        assert first.meets is True
        assert first.reference is not None
        assert first.reference.source
    result = on_adapters("371.2", "2.10")(run_check, WRITE_BW)
    assert result.status == "FAIL"
    assert "371.2 Gb/s over mlx5_0, at least 380" in result.reason
    result = on_adapters("396.1", "7.50")(run_check, WRITE_LAT)
    assert result.status == "FAIL"
    assert "7.5 us over mlx5_0, at most 5" in result.reason


def test_adapters_without_a_reference_are_said_to_have_none(run_check: Runner) -> None:
    result = on_adapters("38.1", "2.10", rate="40")(run_check, WRITE_BW)
    assert result.status == "PASS"
    assert "no reference for soft-RoCE, nor for less than 100 Gb/s" in result.reason


def test_a_node_alone_in_its_partition_is_said_not_to_have_been_tried() -> None:
    found = fabric.Pairs()
    context: Any = None
    fabric._test_partition(context, [Target("gpu03", "other", "gpu", 0, 2)], found)
    assert found.left_out == ["gpu03 was not tried: it is alone in its partition"]


def test_no_command_is_longer_than_linux_takes() -> None:
    words = ("ib_write_bw", "-F -s 8388608 -n 1000", "-d mlx5_0 -i 1", "-d mlx5_0 -i 1") * 16
    jobs = [PairJob((f"gpu{n:04d}", f"gpu{n + 1:04d}"), "gpu", words) for n in range(0, 2000, 2)]
    parts = list(batches(jobs))
    assert [job for part in parts for job in part] == jobs
    assert all(len(shlex.join([shlex.join(job.words) for job in part])) < 100_000 for part in parts)
    assert len(parts[0]) > 20


def test_references_lie_between_what_was_measured_and_nonsense() -> None:
    for rate, measured in ((100, 96.6), (200, 191), (400, 399.6)):
        reference = bandwidth_reference(rate, 8388608)
        assert reference is not None
        assert 0.9 * rate < reference.value < measured < rate
    assert bandwidth_reference(25, 8388608) is None
    latency = latency_reference(400, 2)
    assert latency is not None
    assert 1 < latency.value <= 5


def test_ucx_must_say_what_it_went_over(run_check: Runner) -> None:
    result = run_check(MPI_UCX, slurm(program=CURVE), site())
    assert result.status == "ERROR"
    assert "UCX on gpu01 does not say what it went over" in result.reason
    other = PROOF.replace("inter-node cfg#1 tag(rc_verbs/rxe0:1)", "inter-node cfg#1 tag(tcp/eth0)")
    result = run_check(MPI_UCX, slurm(program=CURVE + other), site())
    assert result.status == "FAIL"
    assert "UCX on gpu01 went over tcp/eth0, not over rxe0:1 alone" in result.reason


def test_connections_of_soft_roce_are_set_up_over_tcp(run_check: Runner) -> None:
    fake = slurm()
    run_check(MPI_UCX, fake, site())
    (line,) = [line for line in fake.asked if "OMPI_MCA_pml=ucx" in line]
    assert r"'UCX_TLS=\rc_verbs,tcp,self'" in line
    assert "UCX_NET_DEVICES=rxe0:1,eth1 " in line


def test_mpi_that_cannot_go_over_ucx_fails(run_check: Runner) -> None:
    errors = "[1796.2] [gpu02:9:0] ucp_context.c:1 UCX  ERROR  no usable transports\n"
    result = run_check(MPI_UCX, slurm(program=(1, "", errors)), site())
    assert result.status == "FAIL"
    assert "MPI over UCX" in result.reason
    assert "no usable transports" in result.reason


TWICE = """\
[gpu01:1433 :a:1436]   ib_device.c:210  Assertion `wait_ctx->cb_id == UCS_CALLBACKQ_ID_NULL' failed
==== backtrace (tid:   1436) ====
 0  /lib/x86_64-linux-gnu/libucs.so.0(ucs_handle_error+0x2bc) [0x7f3c5330d64c]
srun: error: gpu01: task 0: Aborted
"""


class Breaks(FakeSlurm):
    """Ends as UCX does over soft-RoCE, so many times; then all is well."""

    times = 0

    def run(self, host: Host, argv: Sequence[str], *, user: str | None, timeout_s: float) -> Answer:
        answer = super().run(host, argv, user=user, timeout_s=timeout_s)
        if "OMPI_MCA_pml=ucx" not in argv or not self.times:
            return answer
        self.times -= 1
        return replace(answer, rc=143, stdout=CURVE + PROOF, stderr=TWICE)


def breaking(times: int) -> Breaks:
    fake = Breaks(answers=slurm().answers)
    fake.times = times
    return fake


def test_ucx_that_ends_over_soft_roce_is_tried_again(run_check: Runner) -> None:
    result = run_check(MPI_UCX, breaking(5), site())
    assert (result.status, result.reason) == (
        "PASS",
        "at try 6: UCX had ended over an event of soft-RoCE",
    )
    result = run_check(MPI_UCX, breaking(6), site())
    assert result.status == "FAIL"
    assert "Assertion `wait_ctx->cb_id" in result.reason


def test_ucx_that_ends_over_a_real_adapter_fails_at_once(run_check: Runner) -> None:
    fake = breaking(1)
    result = run_check(MPI_UCX, fake, site({"rdma_mode": "roce", "rdma_interface": "eth1"}))
    assert result.status == "FAIL"
    assert len([line for line in fake.asked if "OMPI_MCA_pml=ucx" in line]) == 1


def test_open_mpi_without_ucx_is_a_skip(run_check: Runner) -> None:
    fake = slurm(components=COMPONENTS.replace("pml:ucx", "pml:cm"))
    result = run_check(MPI_UCX, fake, site())
    assert (result.status, result.reason) == (
        "SKIP",
        "Open MPI on login is built without UCX: ompi_info lists no pml ucx",
    )


@pytest.mark.parametrize("check", ALL, ids=lambda check: check.name)
def test_a_site_without_rdma_skips(run_check: Runner, check: object) -> None:
    for without in (make_site(), site({"rdma_mode": "none"})):
        result = run_check(check, slurm(), without)
        assert result.status == "SKIP"
        assert "no compute node is in the group rdma" in result.reason


@pytest.mark.parametrize("check", ALL[1:], ids=lambda check: check.name)
def test_pairs_need_two_nodes(run_check: Runner, check: object) -> None:
    result = run_check(check, slurm(), site(nodes=("gpu01",)))
    assert result.status == "SKIP"
    assert "needs 2 compute nodes with RDMA, there is 1" in result.reason
