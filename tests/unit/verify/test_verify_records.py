import pytest

from hpcsite.slurm.job_records import read_accounting, read_queue, read_tres
from hpcsite.slurm.node_records import (
    SlurmNode,
    SlurmOutputError,
    read_config,
    read_gres,
    read_nodes,
    read_up_partitions,
)
from hpcsite.verify.jobs import job_ids
from tests.unit.verify.fakeslurm import fixture


def test_nodes() -> None:
    gpu01, gpu02 = read_nodes(fixture("nodes-idle.json")).values()
    assert (gpu01.name, gpu01.cpus, gpu01.memory_mib, gpu01.gres) == ("gpu01", 8, 4000, {"gpu": 8})
    assert gpu01.idle
    assert gpu02.usable
    assert (gpu01.partitions, gpu01.version) == (("gpu",), "24.11.5")


def test_a_drained_node_is_neither_usable_nor_idle() -> None:
    gpu02 = read_nodes(fixture("nodes-drained.json"))["gpu02"]
    assert not gpu02.usable
    assert not gpu02.idle
    assert gpu02.gres_in_use == {"gpu": 8}
    assert gpu02.condition == "MIXED+DRAIN (bad fan, see ticket)"


@pytest.mark.parametrize(
    ("state", "usable"),
    [
        ('["IDLE"]', True),
        ('["MIXED", "PLANNED"]', True),
        ('["IDLE", "NOT_RESPONDING"]', False),
        ('["UNKNOWN"]', False),
        ("[]", False),
        ('"DOWN+DRAIN"', False),
        ('"ALLOCATED"', True),
    ],
)
def test_states(state: str, *, usable: bool) -> None:
    (node,) = read_nodes(f'{{"nodes": [{{"name": "a", "state": {state}}}]}}').values()
    assert node.usable is usable


def test_a_completing_node_is_not_idle() -> None:
    text = '{"nodes": [{"name": "a", "state": ["IDLE", "COMPLETING"]}]}'
    assert not read_nodes(text)["a"].idle


def test_what_a_login_shell_prints_first_is_skipped() -> None:
    assert read_nodes("Welcome!\n" + fixture("nodes-idle.json")).keys() == {"gpu01", "gpu02"}


@pytest.mark.parametrize("text", ["", "slurm_load_nodes: error", "{not json", "[1, 2]"])
def test_what_is_no_json_of_slurm(text: str) -> None:
    with pytest.raises(SlurmOutputError):
        read_nodes(text)


LINE = (
    "NodeName=gpu01 Arch=x86_64 CoresPerSocket=8  CPUAlloc=2 CPUEfctv=8 CPUTot=8 "
    "AvailableFeatures=(null) Gres=gpu:h100:8(S:0-1) NodeAddr=10.0.0.21 Version=22.05.8 "
    "OS=Linux 6.1.0 #1 SMP Debian {x}  RealMemory=4000 AllocMem=128 Sockets=1 "
    "State=MIXED+DRAIN ThreadsPerCore=1 Partitions=gpu,all  CfgTRES=cpu=8,mem=4000M,gres/gpu=8 "
    "AllocTRES=cpu=2,mem=128M,gres/gpu=3 Reason=fan is loud, x=1 [root@2026-11-30T13:00:00]\n"
)


def test_nodes_of_a_scontrol_without_json() -> None:
    assert read_nodes("Welcome!\n" + LINE)["gpu01"] == SlurmNode(
        name="gpu01",
        states=("MIXED", "DRAIN"),
        reason="fan is loud, x=1",
        cpus=8,
        memory_mib=4000,
        gres={"gpu": 8},
        partitions=("gpu", "all"),
        cpus_in_use=2,
        memory_in_use_mib=128,
        gres_in_use={"gpu": 3},
        version="22.05.8",
        address="10.0.0.21",
        effective_cpus=8,
    )
    quiet = LINE.partition(" AllocTRES")[0].replace("MIXED+DRAIN", "IDLE*") + " AllocTRES= \n"
    node = read_nodes(quiet)["gpu01"]
    assert (node.states, node.reason) == (("IDLE", "NOT_RESPONDING"), "")
    assert (node.gres_in_use, node.usable) == ({}, False)


def test_partitions_of_a_scontrol_without_json() -> None:
    text = fixture("partitions.txt")
    assert read_up_partitions(text) == ("gpu",)
    assert read_up_partitions(text.replace("State=UP", "State=DOWN")) == ()


def test_partitions_and_configuration() -> None:
    assert read_up_partitions(fixture("partitions.json")) == ("gpu",)
    down = '{"partitions": [{"name": "a", "partition": {"state": ["DOWN"]}}, {"name": "b"}]}'
    assert read_up_partitions(down) == ()
    assert read_config(fixture("config.txt"))["OverTimeLimit"] == "0 min"


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("gpu:8", {"gpu": 8}),
        ("gpu:h100:6(S:0-1),gpu:l40s:2,nic:4", {"gpu": 8, "nic": 4}),
        ("gpu:a100:4(IDX:0,2-4)", {"gpu": 4}),
        ("", {}),
        ("gpu", {}),
    ],
)
def test_gres(text: str, counts: dict[str, int]) -> None:
    assert read_gres(text) == counts


def test_the_queue() -> None:
    jobs = read_queue(fixture("squeue.json"))
    assert {i: (job.state, job.exit_code, job.ended) for i, job in jobs.items()} == {
        14: ("FAILED", "7:0", True),
        15: ("COMPLETED", "0:0", True),
        16: ("RUNNING", "0:0", False),
        17: ("PENDING", "0:0", False),
        18: ("RUNNING", "0:0", False),
    }
    assert jobs[16].tres["gres/gpu"] == 8
    assert jobs[16].nodes == "gpu02"


def test_accounting() -> None:
    jobs = read_accounting(fixture("sacct.json"))
    assert {i: (job.state, job.exit_code) for i, job in jobs.items()} == {
        14: ("FAILED", "7:0"),
        15: ("COMPLETED", "0:0"),
        16: ("CANCELLED", "0:0"),
        17: ("CANCELLED", "0:0"),
        18: ("TIMEOUT", "0:0"),
    }
    assert jobs[14].tres == {"cpu": 1, "mem": 200, "node": 1, "billing": 1, "gres/gpu": 1} | {
        "energy": jobs[14].tres["energy"]
    }
    assert jobs[17].nodes == ""


def test_jobs_of_other_versions_are_read_as_far_as_they_go() -> None:
    text = '{"jobs": [{"job_id": 5, "job_state": "CANCELLED by 0", "exit_code": 0}, {}]}'
    jobs = read_queue(text)
    assert (jobs[5].state, jobs[5].exit_code, jobs[5].tres) == ("CANCELLED", "0:0", {})
    assert jobs[0].state == "UNKNOWN"
    assert jobs[0].exit_code == ""
    assert read_queue('{"jobs": [{"job_id": 5, "exit_code": 1792}]}')[5].exit_code == "7:0"
    assert read_queue('{"jobs": [{"job_id": 5, "exit_code": 9}]}')[5].exit_code == "0:9"
    assert read_accounting('{"jobs": null}') == {}


def test_a_job_that_still_completes_has_not_ended() -> None:
    text = '{"jobs": [{"job_id": 5, "job_state": ["COMPLETED", "COMPLETING"]}]}'
    assert not read_queue(text)[5].ended


def test_tres_amounts() -> None:
    assert read_tres("cpu=2,mem=1.5G,gres/gpu=2,bad,node=x") == {
        "cpu": 2,
        "mem": 1536,
        "gres/gpu": 2,
    }


def test_job_ids_of_sbatch() -> None:
    assert job_ids("Welcome\n17\n18;cluster\n") == [17, 18]
