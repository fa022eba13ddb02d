import json
from types import SimpleNamespace
from typing import Any

import pytest

from hpcsite.site.model import Site
from hpcsite.slurm.job_records import SlurmJob
from hpcsite.verify.results import Result
from hpcsite.verify.suites.confined import JobSaid, read_jobs, read_set
from hpcsite.verify.suites.isolation import CHECKS, cores_are_handed_out
from hpcsite.verify.suites.isolation_faults import core_faults, device_faults, memory_faults
from tests.unit.verify.fakeslurm import FakeSlurm, Runner, fixture, make_site

DEVICES, MEMORY, CORES = CHECKS
LINUXPROC = "ProctrackType = proctrack/linuxproc\n"
CGROUP = "ProctrackType = proctrack/cgroup\nSelectTypeParameters = CR_CORE_MEMORY\n"


def site(tracking: str = "cgroup") -> Site:
    made = make_site()
    keys = made.keys.model_copy(update={"slurm_process_tracking": tracking})
    return made.model_copy(update={"keys": keys})


def records(*states: str) -> str:
    """Sacct's answer for jobs 11 and 12, 21 and 22 …: over and under on each node."""
    found = [
        {"job_id": 10 * node + number, "state": {"current": [state]}}
        for node in (1, 2)
        for number, state in enumerate(states, 1)
    ]
    return json.dumps({"jobs": found})


def said(node: str, text: str, rc: int = 0) -> str:
    return f"@ {node} {rc}\n" + "".join(f"> {line}\n" for line in text.splitlines())


def job(name: str, number: int, *lines: str, gpus: str = "", rc: int = 0) -> str:
    begin = f"{name}: job={number} node=gpu01 gpus={gpus}\n{name}: cgroup=/x\n"
    return begin + "".join(f"{name}: {line}\n" for line in lines) + f"ended={name} rc={rc}\n"


DENIED = "Operation not permitted"
DEVICE, WHY = "/dev/nvidia", "the kernel does not deny it"
NO_DRIVER = "No such device or address"


def opened(*answers: str) -> list[str]:
    return [f"device=/dev/nvidia{number} {answer}" for number, answer in enumerate(answers)]


def one_and_none(one: list[str], none: list[str], gpus: str = "0") -> tuple[JobSaid, JobSaid]:
    jobs = read_jobs(job("one", 1, *one, gpus=gpus) + job("none", 2, *none))
    return jobs["one"], jobs["none"]


def test_a_node_that_denies_what_is_not_given_has_no_fault() -> None:
    for own in (NO_DRIVER, "opened", "No such device", "Device or resource busy"):
        pair = one_and_none(opened(own, DENIED, DENIED), opened(DENIED, DENIED, DENIED))
        assert device_faults(*pair, "/dev/nvidia") == ([], [])


@pytest.mark.parametrize("passed", [NO_DRIVER, "opened"])
def test_a_device_of_others_that_opens_is_wrong(passed: str) -> None:
    pair = one_and_none(opened(passed, passed, passed), opened(passed, DENIED, passed))
    wrong, unknown = device_faults(*pair, "/dev/nvidia")
    assert wrong == [
        f"a job with one GPU could open {DEVICE}1, {DEVICE}2 beside its own {DEVICE}0: {WHY}",
        f"a job without GPUs could open {DEVICE}0, {DEVICE}2: {WHY}",
    ]
    assert unknown == []


def test_a_file_s_mode_is_no_proof() -> None:
    pair = one_and_none(opened(NO_DRIVER, "Permission denied"), opened(DENIED, "Permission denied"))
    wrong, unknown = device_faults(*pair, "/dev/nvidia")
    assert wrong == []
    assert unknown == [
        "a job with one GPU may not open /dev/nvidia1 for its mode: that proves nothing",
        "a job without GPUs may not open /dev/nvidia1 for its mode: that proves nothing",
    ]


def test_a_job_that_is_denied_its_own_device_is_wrong() -> None:
    pair = one_and_none(opened(DENIED, DENIED), opened(DENIED, DENIED))
    wrong, _ = device_faults(*pair, "/dev/nvidia")
    assert wrong == [f"a job with one GPU cannot open its own /dev/nvidia0: {DENIED}"]


def test_a_device_that_is_missing_is_wrong_and_an_answer_never_seen_is_unknown() -> None:
    pair = one_and_none(opened("opened", "missing"), opened(DENIED, "missing"))
    assert device_faults(*pair, "/dev/nvidia")[0] == ["there is no /dev/nvidia1"]
    pair = one_and_none(opened("opened", "Interrupted system call"), opened(DENIED, DENIED))
    (unknown,) = device_faults(*pair, "/dev/nvidia")[1]
    assert "`Interrupted system call` from /dev/nvidia1" in unknown


@pytest.mark.parametrize("gpus", ["", "0,1", "MIG-1"])
def test_without_the_number_of_the_device_nothing_is_proved(gpus: str) -> None:
    pair = one_and_none(opened(DENIED), opened(DENIED), gpus)
    assert "does not say which one device" in device_faults(*pair, "/dev/nvidia")[1][0]


def slurm_job(number: int, state: str) -> SlurmJob:
    return SlurmJob(number, "x", (state,), "", "gpu01", "0:0", {})


OVER_DIED = job("over", 11, "limit=/sys/fs/cgroup/x/memory.max 134217728", rc=137)
OVER_LIVED = job("over", 11, "limit=/a/memory.max 134217728", "swap_kib=2097148", "took=320")
UNDER_LIVED = job("under", 12, "took=32")


@pytest.mark.parametrize(
    ("over", "under", "states", "wrong"),
    [
        (OVER_DIED, UNDER_LIVED, ("OUT_OF_MEMORY", "COMPLETED"), []),
        (
            OVER_LIVED,
            UNDER_LIVED,
            ("COMPLETED", "COMPLETED"),
            ["could take 320 MiB; its limits: memory.max 134217728; the node has 2047 MiB of swap"],
        ),
        (OVER_DIED, UNDER_LIVED, ("FAILED", "COMPLETED"), ["FAILED, not OUT_OF_MEMORY"]),
        (OVER_DIED, UNDER_LIVED, ("", "COMPLETED"), ["unknown, not OUT_OF_MEMORY"]),
        (
            OVER_DIED,
            job("under", 12, rc=137),
            ("OUT_OF_MEMORY", "OUT_OF_MEMORY"),
            ["did not live to take 32 MiB: OUT_OF_MEMORY"],
        ),
        (
            OVER_DIED,
            UNDER_LIVED,
            ("OUT_OF_MEMORY", "CANCELLED"),
            ["stayed within its 128 MiB is CANCELLED, not COMPLETED"],
        ),
    ],
)
def test_memory_is_judged(over: str, under: str, states: tuple[str, str], wrong: list[str]) -> None:
    jobs = read_jobs(over + under)
    known = {n: slurm_job(n, state) for n, state in zip((11, 12), states, strict=True) if state}
    faults, unknown = memory_faults(jobs["over"], jobs["under"], known)
    assert unknown == []
    assert len(faults) == len(wrong)
    assert all(want in fault for fault, want in zip(faults, wrong, strict=True))


def cores(
    name: str,
    allowed: str,
    widened: str,
    *,
    nproc: int = 1,
    taskset: int = 0,
    span: str = "from=100 to=105",
    siblings: tuple[str, ...] = ("0", "1"),
) -> str:
    lines = [f"allowed={allowed}", f"nproc={nproc}", "online=0-1", f"taskset={taskset}"]
    lines += [f"widened={widened}"]
    lines += [f"core={cpu} {of}" for cpu, of in enumerate(siblings)]
    return job(name, 1, *lines, span)


HELD = cores("first", "0", "0"), cores("second", "1", "1")
THREADS = ("0,2", "1,3", "0,2", "1,3")


@pytest.mark.parametrize(
    ("first", "second", "wrong", "unknown"),
    [
        (*HELD, "", ""),
        (cores("first", "0", "0", taskset=1), HELD[1], "", ""),
        (
            cores("first", "0,2", "0,2", nproc=2, siblings=THREADS),
            cores("second", "1", "1,3", siblings=THREADS),
            "",
            "",
        ),
        (cores("first", "0", "0-1"), HELD[1], "on CPU 0 and moved itself to CPUs 0-1", ""),
        (cores("first", "0-1", "0-1", nproc=2), HELD[1], "may run on CPUs 0-1", ""),
        (HELD[0], cores("second", "0", "0"), "two jobs of one core each run on CPU 0", ""),
        (cores("first", "0", "0", nproc=2), HELD[1], "nproc says 2", ""),
        (HELD[0], cores("second", "1", "1", span="from=106 to=111"), "", "at the same time"),
        (HELD[0], cores("second", "1", "1", taskset=127), "", "taskset does not work"),
        (HELD[0], job("second", 2), "", "did not tell their CPUs"),
    ],
)
def test_cores_are_judged(first: str, second: str, wrong: str, unknown: str) -> None:
    jobs = read_jobs(first + second)
    faults, not_told = core_faults(jobs["first"], jobs["second"])
    assert bool(faults) is bool(wrong)
    assert bool(not_told) is bool(unknown)
    assert wrong in "".join(faults)
    assert unknown in "".join(not_told)


def test_sets_are_read_as_the_kernel_writes_them() -> None:
    assert read_set("0-2,8") == {0, 1, 2, 8}
    with pytest.raises(ValueError, match="invalid literal"):
        read_set("")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
@pytest.mark.parametrize("tracking", ["linuxproc", "auto"])
def test_without_cgroups_nothing_is_proved(run_check: Runner, check: object, tracking: str) -> None:
    slurm = FakeSlurm(answers={"config": LINUXPROC})
    result = run_check(check, slurm, site(tracking))
    assert result.status == "SKIP"
    assert "no cgroups on these hosts" in result.reason
    assert "proctrack/linuxproc" in result.reason
    assert not slurm.asked


def devices(one: list[str], none: list[str]) -> str:
    return job("one", 11, *one, gpus="0") + job("none", 12, *none)


SOUND = devices(opened("opened", DENIED), opened(DENIED, DENIED))


def ask(run_check: Runner, check: object, answer: str, sacct: str = "") -> Result:
    slurm = FakeSlurm(answers={"config": CGROUP, "sacct": sacct, "both": answer})
    return run_check(check, slurm, site())


def test_devices_pass_on_every_node(run_check: Runner) -> None:
    result = ask(run_check, DEVICES, said("gpu01", SOUND) + said("gpu02", SOUND))
    assert result.status == "PASS", result.reason
    assert result.nodes == "gpu[01-02]"


def test_the_node_that_does_not_deny_is_named(run_check: Runner) -> None:
    broken = devices(opened("opened", "opened"), opened(DENIED, DENIED))
    result = ask(run_check, DEVICES, said("gpu01", SOUND) + said("gpu02", broken))
    assert result.status == "FAIL"
    assert result.reason.startswith("gpu02: a job with one GPU could open /dev/nvidia1")


def test_nodes_with_the_same_fault_are_named_together(run_check: Runner) -> None:
    broken = devices(opened("opened", "opened"), opened(DENIED, DENIED))
    result = ask(run_check, DEVICES, said("gpu01", broken) + said("gpu02", broken))
    assert result.reason.startswith("gpu[01-02]: a job with one GPU")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_a_job_that_did_not_end_is_not_proved(run_check: Runner, check: object) -> None:
    cut = "one: job=11 node=gpu01 gpus=0\nover: job=11 node=gpu01\nfirst: job=11 node=gpu01\n"
    result = ask(run_check, check, said("gpu01", cut, 124) + said("gpu02", "", 1))
    assert result.status == "ERROR"
    assert "gpu01: a job did not run to its end: no answer in time" in result.reason


def test_memory_is_asked_of_accounting(run_check: Runner) -> None:
    answer = said("gpu01", OVER_DIED + UNDER_LIVED, 1)
    answer += said("gpu02", (OVER_DIED + UNDER_LIVED).replace("job=1", "job=2"), 1)
    result = ask(run_check, MEMORY, answer, records("OUT_OF_MEMORY", "COMPLETED"))
    assert result.status == "PASS", result.reason
    result = ask(run_check, MEMORY, answer, records("FAILED", "COMPLETED"))
    assert result.status == "FAIL"
    assert result.reason.startswith("gpu[01-02]: a job of 128 MiB did not live")


def test_cores_pass_and_fail_by_node(run_check: Runner) -> None:
    loose = cores("first", "0", "0-1") + HELD[1]
    result = ask(run_check, CORES, said("gpu01", "".join(HELD)) + said("gpu02", loose))
    assert result.status == "FAIL"
    assert result.reason.startswith("gpu02: a job of one core began on CPU 0 and moved itself")


def test_cores_are_not_asked_for_where_slurm_hands_out_sockets(run_check: Runner) -> None:
    config = CGROUP.replace("CR_CORE_MEMORY", "CR_SOCKET_MEMORY")
    result = run_check(CORES, FakeSlurm(answers={"config": config}), site())
    assert result.status == "SKIP"
    assert "CR_SOCKET_MEMORY" in result.reason


def test_cores_are_not_asked_for_where_the_site_s_nodes_have_one_each() -> None:
    nodes = {"gpu01": SimpleNamespace(cpus=1), "elsewhere": SimpleNamespace(cpus=8)}
    cluster: Any = SimpleNamespace(
        config={"SelectTypeParameters": "CR_CORE"}, declared=("gpu01",), nodes=nodes
    )
    context: Any = SimpleNamespace(cluster=cluster)
    assert "one CPU" in cores_are_handed_out(context)
    cluster.declared = ("gpu01", "not-in-slurm")
    assert cores_are_handed_out(context) == ""


def test_the_fixture_of_the_lab_has_no_cgroups() -> None:
    assert "proctrack/linuxproc" in fixture("config.txt")


# What a node of Debian 13 with Slurm 24.11.5 and cgroup v2 said, with the constraint and without.
@pytest.mark.parametrize(
    ("check", "name", "wrong"),
    [
        (DEVICES, "devices", "could open /dev/nvidia1, /dev/nvidia2, /dev/nvidia3 beside its own"),
        (MEMORY, "memory", "could take 320 MiB; its limits: none; the node has 0 MiB of swap"),
        (CORES, "cores", "began on CPU 1 and moved itself to CPUs 0-1: no cpuset holds it"),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_real_answers_with_and_without_the_constraint(
    run_check: Runner, check: object, name: str, wrong: str
) -> None:
    sound, broken = (fixture(f"isolation-{name}-{how}.txt") for how in ("good", "bad"))
    states = {3: "OUT_OF_MEMORY", 4: "COMPLETED", 10: "COMPLETED", 11: "COMPLETED"}
    sacct = json.dumps(
        {"jobs": [{"job_id": i, "state": {"current": [s]}} for i, s in states.items()]}
    )
    result = ask(run_check, check, sound, sacct)
    # The other node's answer is not in the recording, which is an ERROR, never a PASS.
    assert "no answer for gpu02" in result.reason
    both_nodes = sound + sound.replace("gpu01", "gpu02")
    assert ask(run_check, check, both_nodes, sacct).status == "PASS"
    result = ask(run_check, check, sound + broken.replace("gpu01", "gpu02"), sacct)
    assert result.status == "FAIL"
    assert result.reason.startswith("gpu02: ")
    assert wrong in result.reason
