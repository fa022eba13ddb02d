import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsite.site.model import Gpus, Hardware, NodeGroup
from hpcsite.slurm.gres import Gres
from hpcsite.slurm.hardware import (
    NEEDED_CONTROLLERS,
    Candidate,
    Evidence,
    Machine,
    configured_memory,
    contract_problem,
    machine_of,
)

DECLARED = NodeGroup(
    hardware=Hardware(sockets=2, cores_per_socket=32, threads_per_core=2, memory_mib=1_000_000),
    gpus=Gpus(count=8),
)
MEASURED = NodeGroup(gpus=Gpus(count=8, type="h100"))
GPUS = (Gres(8),)
H100 = (Gres(8, "h100"),)


def evidence(
    *, sockets: int = 2, cores: int = 32, memory_mib: int = 1_000_000, gpus: int = 8
) -> Evidence:
    return Evidence(
        cpus=sockets * cores * 2,
        sockets=sockets,
        cores_per_socket=cores,
        threads_per_core=2,
        memory_mib=memory_mib,
        gpu_devices=tuple(f"/dev/nvidia{number}" for number in range(gpus)),
        cgroup_controllers=NEEDED_CONTROLLERS,
    )


def node(found: Evidence | None) -> Candidate:
    return Candidate("gpu01", "10.0.0.1", "gpu", found)


def test_a_node_that_is_as_declared_keeps_its_contract() -> None:
    assert contract_problem(node(evidence()), DECLARED, "cgroup") == ""


def test_more_than_declared_keeps_the_contract() -> None:
    found = evidence(cores=64, memory_mib=2_000_000)
    assert contract_problem(node(found), DECLARED, "cgroup") == ""


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (evidence(gpus=7), "group gpu declares 8 GPUs, /dev/nvidia* has 7"),
        (evidence(gpus=9), "group gpu declares 8 GPUs, /dev/nvidia* has 9"),
        (evidence(sockets=1, cores=64), "2 sockets, slurmd -C measures 1"),
        (evidence(cores=16), "64 cores, slurmd -C measures 32"),
        (evidence(memory_mib=949_999), "1000000 MiB of memory, slurmd -C measures 949999 MiB"),
    ],
)
def test_less_than_declared_breaks_the_contract(found: Evidence, said: str) -> None:
    problem = contract_problem(node(found), DECLARED, "cgroup")
    assert problem.startswith("gpu01 breaks its contract: ")
    assert said in problem


def test_the_margin_forgives_a_little_less_memory() -> None:
    assert contract_problem(node(evidence(memory_mib=950_000)), DECLARED, "cgroup") == ""


def test_a_virtual_group_is_held_to_its_gpus_only() -> None:
    virtual = DECLARED.model_copy(update={"virtual": True})
    small = evidence(sockets=1, cores=2, memory_mib=4000)
    assert contract_problem(node(small), virtual, "cgroup") == ""
    assert "9" in contract_problem(node(evidence(gpus=9)), virtual, "cgroup")


def test_cgroup_tracking_needs_the_controllers() -> None:
    bare = Evidence.from_result(
        {
            "evidence": {
                "cpus": 128,
                "sockets": 2,
                "cores_per_socket": 32,
                "threads_per_core": 2,
                "memory_mib": 1_000_000,
                "gpu_devices": [f"/dev/nvidia{number}" for number in range(8)],
                "cgroup_controllers": ["pids", "cpu"],
            }
        }
    )
    problem = contract_problem(node(bare), DECLARED, "cgroup")
    assert "cpuset, memory" in problem
    assert "site_slurm_process_tracking to auto or linuxproc" in problem
    assert contract_problem(node(bare), DECLARED, "linuxproc") == ""


def test_a_node_that_could_not_be_measured_says_why() -> None:
    failed = Evidence.from_result({"failed": True, "msg": "apt is broken"})
    assert "apt is broken" in contract_problem(node(failed), DECLARED, "linuxproc")


def test_a_node_outside_the_run_breaks_nothing() -> None:
    assert contract_problem(node(None), DECLARED, "cgroup") == ""


def test_the_declaration_wins_over_what_is_measured() -> None:
    machine = machine_of(node(evidence(cores=64, memory_mib=2_000_000)), DECLARED, None, GPUS)
    assert machine == Machine(128, 2, 32, 2, 950_000, (Gres(8),))


def test_measured_memory_is_rounded_so_that_equal_nodes_share_a_line() -> None:
    first = machine_of(node(evidence(memory_mib=1_031_705)), MEASURED, None, H100)
    second = machine_of(node(evidence(memory_mib=1_031_688)), MEASURED, None, H100)
    assert first == second
    assert first is not None
    assert first.gres == H100


@given(st.integers(min_value=256, max_value=10_000_000), st.floats(min_value=0, max_value=49))
def test_configured_memory_never_exceeds_what_is_there(memory_mib: int, margin: float) -> None:
    group = NodeGroup(memory_margin_percent=margin)
    machine = machine_of(node(evidence(memory_mib=memory_mib)), group, None, ())
    assert machine is not None
    configured = configured_memory(memory_mib, margin)
    assert configured * 0.98 <= machine.real_memory_mib <= configured <= memory_mib


@pytest.mark.parametrize(
    ("standing_mib", "kept"), [(900_000, True), (950_000, True), (950_001, False), (854_999, False)]
)
def test_standing_memory_is_kept_while_it_holds(standing_mib: int, kept: bool) -> None:
    standing = Machine(128, 2, 32, 2, standing_mib, (Gres(8, "h100"),))
    machine = machine_of(node(evidence()), MEASURED, standing, H100)
    assert machine is not None
    assert (machine.real_memory_mib == standing_mib) is kept


def test_a_node_outside_the_run_keeps_its_line_with_the_group_s_gpus() -> None:
    standing = Machine(128, 2, 32, 2, 900_000, (Gres(4),))
    assert machine_of(node(None), MEASURED, standing, H100) == Machine(128, 2, 32, 2, 900_000, H100)


def test_a_node_that_nobody_knows_gets_no_line() -> None:
    assert machine_of(node(None), MEASURED, None, H100) is None


@pytest.mark.parametrize(
    "line",
    [
        {"cpus": "8"},
        {"realmemory": "4000"},
        {"cpus": "8", "realmemory": "4G"},
        {"cpus": "0", "realmemory": "4000"},
    ],
)
def test_an_incomplete_line_is_no_evidence(line: dict[str, str]) -> None:
    assert Machine.of_line(line) is None


@pytest.mark.parametrize(
    ("line", "machine"),
    [
        ({"cpus": "8"}, (8, 8, 1, 1)),
        ({"procs": "8"}, (8, 8, 1, 1)),
        ({"cpus": "8", "threadspercore": "2"}, (8, 4, 1, 2)),
        ({"boards": "2", "socketsperboard": "2", "corespersocket": "4"}, (16, 4, 4, 1)),
        ({"socketsperboard": "2", "corespersocket": "4", "threadspercore": "2"}, (16, 2, 4, 2)),
        ({"corespersocket": "4"}, (4, 1, 4, 1)),
        ({"cpus": "4", "sockets": "1", "corespersocket": "4", "threadspercore": "2"}, (4, 1, 4, 2)),
    ],
)
def test_what_a_line_leaves_out_is_inferred_as_slurmctld_does(
    line: dict[str, str], machine: tuple[int, int, int, int]
) -> None:
    assert Machine.of_line({**line, "realmemory": "4000"}) == Machine(*machine, 4000)
