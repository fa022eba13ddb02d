import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from hpcsite.site.model import Host, Site
from hpcsite.verify.parsers.facts import read_facts, told
from hpcsite.verify.suites.node import CHECKS
from hpcsite.verify.survey import SCRIPT
from hpcsite.verify.transport import Answer, UnreachableError
from tests.unit.verify.fakeslurm import SURVEY, FakeSlurm, Runner, make_site

BY_NAME = {check.name: check for check in CHECKS}
STATE, ANSWERS, HARDWARE = (BY_NAME[name] for name in ("state", "answers", "hardware"))
VERSIONS, CLOCKS, CUDA = (BY_NAME[name] for name in ("versions", "clocks", "cuda"))
SETTINGS = BY_NAME["settings"]
DEVICES = "".join(f"device=/dev/nvidia{i}\n" for i in range(8))


def survey_of(name: str, old: str = "", new: str = "", devices: str = DEVICES) -> dict[str, str]:
    return {name: (SURVEY.format(name=name) + devices).replace(old, new)}


@pytest.mark.parametrize(
    "check", [STATE, ANSWERS, HARDWARE, VERSIONS, CLOCKS], ids=lambda check: check.name
)
def test_a_healthy_site_passes(run_check: Runner, check: object) -> None:
    result = run_check(check, FakeSlurm())
    assert result.status == "PASS", result.reason
    assert "gpu[01-02]" in result.nodes


def test_a_drained_node_is_named_with_its_reason(run_check: Runner) -> None:
    result = run_check(STATE, FakeSlurm(nodes="nodes-drained.json"))
    assert (result.status, result.reason) == (
        "FAIL",
        "gpu02 is MIXED+DRAIN (bad fan, see ticket)",
    )


@pytest.mark.parametrize("check", [ANSWERS, HARDWARE, VERSIONS, CLOCKS, CUDA], ids=lambda c: c.name)
def test_what_a_drained_node_hides_is_an_error(run_check: Runner, check: object) -> None:
    result = run_check(check, FakeSlurm(nodes="nodes-drained.json"))
    assert result.status == "ERROR"
    assert "bad fan" in result.reason


def test_a_node_that_slurm_does_not_know(run_check: Runner) -> None:
    site = make_site()
    extra = site.hosts["gpu02"].model_copy(update={"name": "gpu03"})
    grown = site.model_copy(update={"hosts": {**site.hosts, "gpu03": extra}})
    result = run_check(STATE, FakeSlurm(), grown)
    assert (result.status, result.reason) == ("FAIL", "gpu03 is not known to Slurm")


def test_a_partition_leaves_other_nodes_unverified(run_check: Runner) -> None:
    result = run_check(ANSWERS, FakeSlurm(), partition="other")
    assert result.status == "ERROR"
    assert "gpu[01-02] are not in partition other" in result.reason


def test_a_wrong_host_name(run_check: Runner) -> None:
    slurm = FakeSlurm(surveys=survey_of("gpu02", "hostname=gpu02", "hostname=localhost"))
    result = run_check(ANSWERS, slurm)
    assert (result.status, result.reason) == ("FAIL", "gpu02 calls itself localhost")


def test_a_node_that_runs_no_job(run_check: Runner) -> None:
    text = (
        "@ gpu01 0\n> hostname=gpu01\n@ gpu02 1\n! srun: error: Task launch failed on node gpu02\n"
    )
    result = run_check(ANSWERS, FakeSlurm(answers={"spread gpu01": text}))
    assert result.status == "FAIL"
    assert "gpu02 does not run a job: srun: error: Task launch failed" in result.reason


def test_a_host_that_ssh_does_not_reach(run_check: Runner) -> None:
    class Unreachable(FakeSlurm):
        def run(
            self, host: Host, argv: Sequence[str], *, user: str | None, timeout_s: float
        ) -> Answer:
            if host.name == "head":
                raise UnreachableError("head: No route to host")
            return super().run(host, argv, user=user, timeout_s=timeout_s)

    result = run_check(ANSWERS, Unreachable())
    assert (result.status, result.reason) == ("FAIL", "cannot reach head: No route to host")
    assert run_check(CLOCKS, Unreachable()).status == "ERROR"


@pytest.mark.parametrize(
    ("slurm", "said"),
    [
        (
            FakeSlurm(surveys=survey_of("gpu02", "device=/dev/nvidia7\n")),
            "gpu02: group gpu declares 8 GPUs, /dev/nvidia* has 7",
        ),
        (
            FakeSlurm(surveys=survey_of("gpu01", devices="")),
            "gpu01: group gpu declares 8 GPUs, /dev/nvidia* has 0",
        ),
    ],
)
def test_missing_devices(run_check: Runner, slurm: FakeSlurm, said: str) -> None:
    result = run_check(HARDWARE, slurm)
    assert (result.status, result.reason) == ("FAIL", said)


def changed_group(**changes: object) -> Site:
    site = make_site(Path("/site"))
    group = site.keys.node_groups["gpu"].model_copy(update=changes)
    return site.model_copy(
        update={"keys": site.keys.model_copy(update={"node_groups": {"gpu": group}})}
    )


def test_a_declaration_that_slurm_does_not_follow(run_check: Runner) -> None:
    site = changed_group()
    hardware = site.keys.node_groups["gpu"].hardware
    assert hardware
    more = hardware.model_copy(update={"cores_per_socket": 16, "memory_mib": 8192})
    result = run_check(HARDWARE, FakeSlurm(), changed_group(hardware=more))
    assert result.status == "FAIL"
    assert "gpu01: group gpu declares 16 CPUs, Slurm has 8" in result.reason
    assert "8192 MiB of memory, 7782 MiB with its margin, Slurm has 4000 MiB" in result.reason


def test_a_real_node_must_have_what_slurm_was_told(run_check: Runner) -> None:
    result = run_check(HARDWARE, FakeSlurm(), changed_group(virtual=False))
    assert result.status == "FAIL"
    assert "8 CPUs, the node itself has 2" in result.reason


def test_an_odd_kernel_names_its_node(run_check: Runner) -> None:
    result = run_check(VERSIONS, FakeSlurm(surveys=survey_of("gpu02", "6.12.57", "6.12.48")))
    assert (result.status, result.reason) == (
        "FAIL",
        "kernel: 6.12.48 on gpu02, but 6.12.57 on gpu01,head,login",
    )
    (kernel,) = [prop for prop in result.properties if prop.name == "kernel"]
    assert [(v.value, v.nodes) for v in kernel.variants] == [
        ("6.12.57", "gpu01,head,login"),
        ("6.12.48", "gpu02"),
    ]


def test_a_version_that_nobody_tells(run_check: Runner) -> None:
    slurm = FakeSlurm(surveys=survey_of("login", "munge=munge-0.5.16 (2024-03-15)\n"))
    result = run_check(VERSIONS, slurm)
    assert (result.status, result.reason) == ("FAIL", "login cannot tell its version of munge")


WITHOUT_SLURM = SURVEY.format(name="db").replace("slurm=", "x=").replace("munge=", "y=")


def test_a_host_outside_of_slurm_is_compared_in_system_and_kernel_only(run_check: Runner) -> None:
    site = make_site(db={"mariadb"})
    result = run_check(VERSIONS, FakeSlurm(surveys={"db": WITHOUT_SLURM}), site)
    assert result.status == "PASS", result.reason
    assert "db" in result.nodes
    assert {p.name: "db" in p.variants[0].nodes for p in result.properties} == {
        "os": True,
        "kernel": True,
        "slurm": False,
        "munge": False,
    }
    odd = WITHOUT_SLURM.replace("6.12.57", "6.1.0")
    result = run_check(VERSIONS, FakeSlurm(surveys={"db": odd}), site)
    assert result.status == "FAIL"
    assert "6.1.0 on db" in result.reason


def test_a_host_of_slurm_without_it_fails(run_check: Runner) -> None:
    site = make_site(dbd={"slurm_dbd"})
    result = run_check(VERSIONS, FakeSlurm(surveys={"dbd": WITHOUT_SLURM}), site)
    assert (result.status, result.reason) == (
        "FAIL",
        "dbd cannot tell its version of slurm; dbd cannot tell its version of munge",
    )


@pytest.mark.parametrize("tool", ["slurmd", "slurmctld", "slurmdbd", "sinfo"])
def test_any_one_of_slurms_tools_tells_its_version(tmp_path: Path, tool: str) -> None:
    program = tmp_path / tool
    program.write_text("#!/bin/sh\necho slurm-wlm 24.11.5\n")
    program.chmod(0o755)
    said = subprocess.run(
        ["sh", "-c", SCRIPT, "survey", "/dev/none"],
        env={"PATH": f"{tmp_path}:/bin:/usr/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert read_facts("host", said.stdout).values["slurm"] == "24.11.5"


def test_no_driver_anywhere_is_a_skip_never_a_pass(run_check: Runner) -> None:
    result = run_check(CUDA, FakeSlurm())
    assert (result.status, result.reason) == ("SKIP", "no CUDA device")


WITH_TOOL = {
    name: text
    for node in ("gpu01", "gpu02")
    for name, text in survey_of(node, "cpus=", "driver=loaded\nnvidia_smi=installed\ncpus=").items()
}
GPU = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)"


def test_a_driver_that_works(run_check: Runner) -> None:
    slurm = FakeSlurm(
        surveys=WITH_TOOL, answers={"nvidia-smi -L": f"@ gpu01 0\n> {GPU}\n@ gpu02 0\n> {GPU}\n"}
    )
    assert run_check(CUDA, slurm).status == "PASS"


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (
            "@ gpu02 9\n> NVIDIA-SMI has failed\n",
            "nvidia-smi fails on gpu02: NVIDIA-SMI has failed",
        ),
        ("@ gpu02 0\n> No devices were found\n", "nvidia-smi fails on gpu02: No devices"),
    ],
)
def test_a_driver_that_fails(run_check: Runner, second: str, said: str) -> None:
    slurm = FakeSlurm(surveys=WITH_TOOL, answers={"nvidia-smi -L": f"@ gpu01 0\n> {GPU}\n{second}"})
    result = run_check(CUDA, slurm)
    assert result.status == "FAIL"
    assert said in result.reason


def test_a_loaded_driver_without_its_tool_is_no_skip(run_check: Runner) -> None:
    result = run_check(CUDA, FakeSlurm(surveys=survey_of("gpu02", "cpus=", "driver=loaded\ncpus=")))
    assert result.status == "FAIL"
    assert "gpu02 has no nvidia-smi" in result.reason


def test_versions_are_read_from_what_tools_print() -> None:
    assert told("slurm", "slurm-wlm 24.11.5") == "24.11.5"
    assert told("slurm", "slurm 25.11.8") == "25.11.8"
    assert told("munge", "munge-0.5.16 (2024-03-15)") == "0.5.16"
    facts = read_facts("x", "Welcome!\nslurm=\nkernel=6.1=a\ncpus=two\n")
    assert facts.values == {"kernel": "6.1=a", "cpus": "two"}
    assert facts.number("cpus") == 0
