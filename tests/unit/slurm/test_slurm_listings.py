import pytest

from hpcsite.slurm.listings import jobs_on, read_node_states, to_drain

# scontrol --oneliner show node, of Slurm 24.11 and shortened; the star is 21.08's.
NODES = """\
NodeName=gpu01 Arch=x86_64 NodeAddr=10.0.0.1 OS=Linux 6.1 #1 SMP State=IDLE ThreadsPerCore=1
NodeName=gpu02 Arch=x86_64 State=IDLE+DRAIN Weight=1 Reason=my fan | x [root@2026-11-30T13:40:07]
NodeName=gpu03 Arch=x86_64 State=DOWN Weight=1  Reason=by hand [root@2026-11-30T13:40:07] Comment=x
NodeName=gpu04 CPUAlloc=0 State=DOWN* Weight=1 Reason=Not responding [slurm@2026-11-30T13:40:07]
NodeName=gpu05 CPUAlloc=0 State=IDLE+NOT_RESPONDING Weight=1
NodeName=gpu06 CPUAlloc=0 State=UNKNOWN* Weight=1
NodeName=gpu07 State=INVALID_REG+DRAIN Weight=1 Reason=Low RealMemory [slurm@2026-11-30T13:40:07]
NodeName=gpu08 State=FAIL Weight=1
NodeName=gpu09 State=ALLOCATED+CLOUD Weight=1
"""


@pytest.mark.parametrize(
    ("node", "fault"),
    [
        ("gpu01", ""),
        ("gpu02", ""),
        ("gpu03", "it is DOWN: by hand"),
        ("gpu04", "slurmctld does not hear it"),
        ("gpu05", "slurmctld does not hear it"),
        ("gpu06", "slurmctld does not hear it"),
        ("gpu07", "it is INVALID_REG: Low RealMemory"),
        ("gpu08", "it is FAIL: no reason given"),
        ("gpu09", ""),
    ],
)
def test_a_node_takes_jobs_or_says_why_not(node: str, fault: str) -> None:
    assert read_node_states(NODES)[node].fault == fault


def test_drained_nodes_and_reasons_are_read() -> None:
    states = read_node_states(NODES)
    assert len(states) == 9
    assert [name for name, state in states.items() if state.drained] == ["gpu02", "gpu07"]
    assert states["gpu02"].reason == "my fan | x"


def test_what_is_no_node_is_no_state() -> None:
    assert read_node_states("No nodes in the system\n") == {}


def test_jobs_are_found_by_the_nodes_that_they_hold() -> None:
    listing = "12|gpu[01-02]\n13_4|gpu02\n14|\n15|cpu[1-3]\n"
    assert jobs_on(listing, ["gpu02", "gpu03"]) == {"gpu02": ["12", "13_4"]}
    assert jobs_on(listing, ["gpu03"]) == {}


def test_a_reason_of_our_own_is_renewed_and_anothers_is_left() -> None:
    mark = "hpcsite: "
    ours = "NodeName=gpu10 State=IDLE+DRAIN Reason=hpcsite: 8 GPUs [root@2026-11-30T13:40:07]\n"
    states = read_node_states(NODES + ours)
    wanted = dict.fromkeys(("gpu01", "gpu02", "gpu10", "new"), "hpcsite: 2 GPUs")
    assert to_drain(states, wanted, mark) == ["gpu01", "gpu10", "new"]
    assert to_drain(states, {"gpu10": "hpcsite: 8 GPUs"}, mark) == []
