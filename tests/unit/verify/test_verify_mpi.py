import pytest

from hpcsite.verify.suites.mpi import CHECKS, read_pingpong
from tests.unit.verify.fakeslurm import FakeSlurm, Runner, make_site

COLLECTIVES, PINGPONG = CHECKS
COMPILED = "folder=/tmp/hpcsite-run\n"
RIGHT = (
    "host=gpu01\nhost=gpu01.lab.example\nhost=gpu02\nhost=gpu02\n"
    "ranks=4\nring=10\nallreduce_errors=0\nalltoall_errors=0\n"
)
CURVE = "latency_us=4.568\nbandwidth 1024 0.360736\nbandwidth 4096 0.688250\n"


def slurm(
    text: str | tuple[int, str, str], compiled: str | tuple[int, str, str] = COMPILED
) -> FakeSlurm:
    return FakeSlurm(answers={"mpicc": compiled, "srun": text})


def test_right_results_pass(run_check: Runner) -> None:
    fake = slurm(RIGHT)
    result = run_check(COLLECTIVES, fake)
    assert result.status == "PASS", result.reason
    (line,) = [line for line in fake.asked if line.startswith("srun")]
    assert "--mpi=pmix" in line
    assert "--nodes=2" in line


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("ring=10", "ring=9", "ring is 9, not 10"),
        ("allreduce_errors=0", "allreduce_errors=3", "allreduce_errors is 3, not 0"),
        ("alltoall_errors=0\n", "", "alltoall_errors is missing, not 0"),
        ("ranks=4", "ranks=1", "ranks is 1, not 4"),
        ("host=gpu02\nhost=gpu02\n", "", "ranks ran on gpu01"),
    ],
)
def test_wrong_results_fail(run_check: Runner, old: str, new: str, said: str) -> None:
    result = run_check(COLLECTIVES, slurm(RIGHT.replace(old, new)))
    assert result.status == "FAIL"
    assert said in result.reason
    assert result.nodes == "gpu[01-02]"


def test_a_program_that_dies_fails_with_its_first_error(run_check: Runner) -> None:
    errors = "x\nsrun: error: gpu02: task 2: Segmentation fault\nsrun: launch/slurm: aborted\n"
    result = run_check(COLLECTIVES, slurm((139, "", errors)))
    assert result.status == "FAIL"
    assert "gpu02: task 2: Segmentation fault" in result.reason


def test_a_program_that_hangs_names_the_node_that_went_down(run_check: Runner) -> None:
    fake = slurm((124, "", "slurmstepd-gpu01: error: *** STEP 125.0 ON gpu01 CANCELLED ***\n"))
    fake.answers["show nodes 'gpu[01-02]'"] = (
        '{"nodes": [{"name": "gpu01", "state": ["MIXED"]},'
        ' {"name": "gpu02", "state": ["MIXED", "NOT_RESPONDING"]}]}'
    )
    result = run_check(COLLECTIVES, fake)
    assert result.status == "FAIL"
    assert result.reason.startswith("gpu02 is MIXED+NOT_RESPONDING; the program did not end")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_without_a_compiler_it_is_a_skip(run_check: Runner, check: object) -> None:
    result = run_check(check, slurm("", "Welcome to login\nmissing\n"))
    assert (result.status, result.reason) == (
        "SKIP",
        "no mpicc on login; `openmpi_development: true` for login makes deploy install it",
    )


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_a_compiler_outside_of_the_path_is_found(run_check: Runner, check: object) -> None:
    fake = slurm(RIGHT)
    run_check(check, fake)
    (line,) = [line for line in fake.asked if "mpicc" in line]
    # Where the RHEL family's package openmpi-devel puts it.
    assert line.index("/usr/lib64/openmpi/bin") < line.index("command -v mpicc")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_a_compiler_that_fails(run_check: Runner, check: object) -> None:
    result = run_check(check, slurm("", (8, COMPILED, "mpi.h: No such file or directory\n")))
    assert result.status == "FAIL"
    assert "mpi.h: No such file" in result.reason


def test_no_place_to_compile_is_an_error(run_check: Runner) -> None:
    result = run_check(COLLECTIVES, slurm("", (9, "", "mkdir: No space left on device\n")))
    assert result.status == "ERROR"


def test_latency_and_bandwidth_are_measured(run_check: Runner) -> None:
    result = run_check(PINGPONG, slurm(CURVE))
    assert result.status == "PASS"
    latency, *bandwidth = result.measurements
    assert (latency.value, latency.unit, latency.direction) == (4.568, "us", "lower")
    assert [(m.value, m.unit, m.at["message_bytes"]) for m in bandwidth] == [
        (0.360736, "GB/s", 1024),
        (0.68825, "GB/s", 4096),
    ]
    assert all(measured.meets is None for measured in result.measurements)


@pytest.mark.parametrize(
    "text",
    ["", "latency_us=4.5\n", CURVE.replace("0.360736", "0.000000"), CURVE + "bandwidth 8 1.0\n"],
)
def test_numbers_that_cannot_be_are_an_error(run_check: Runner, text: str) -> None:
    assert run_check(PINGPONG, slurm(text)).status == "ERROR"


def test_busy_nodes_are_an_error(run_check: Runner) -> None:
    busy = (1, "", "srun: error: Unable to allocate resources: Requested nodes are busy\n")
    result = run_check(PINGPONG, slurm(busy))
    assert result.status == "ERROR"
    assert "nodes busy: gpu[01-02]" in result.reason


def test_waiting_first_is_not_being_busy(run_check: Runner) -> None:
    failed = (
        "srun: job 171 queued and waiting for resources\nsrun: error: gpu02: broadcast failed\n"
    )
    result = run_check(PINGPONG, slurm((1, "", failed)))
    assert result.status == "FAIL"


def test_one_node_is_a_skip(run_check: Runner) -> None:
    site = make_site(hosts=("head", "login", "gpu01"))
    assert run_check(PINGPONG, slurm(CURVE), site).status == "SKIP"


def test_noise_around_the_numbers_is_ignored() -> None:
    assert len(read_pingpong(f"[gpu01] WARNING\n{CURVE}bandwidth x y\n", "a,b")) == 3
