"""Suite `training` on what PyTorch said in a lab of two nodes, whole and broken."""

import contextlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsite.site.model import Lab, NodeGroup, Site
from hpcsite.verify.engine import Check
from hpcsite.verify.parsers import UnreadableError
from hpcsite.verify.parsers.training import read_training
from hpcsite.verify.spread import NodeAnswer
from hpcsite.verify.suites.training import CHECKS, slow_nodes
from hpcsite.verify.trainer import read_torch
from tests.unit.verify.fakeslurm import FakeSlurm, Runner, make_site

DDP, FSDP = CHECKS
GOLDEN = Path(__file__).parents[2] / "golden/tools/training"
RIGHT = {check: (GOLDEN / f"{check.name}-gloo-2.6.txt").read_text() for check in CHECKS}
TORCH = "@ torch 2.6.0+debian cuda 0 gloo 1"
Mutation = Callable[[str], str]


def lab() -> Site:
    site = make_site()
    network = {"backend": "nspawn", "network": "10.61.11.0/24"}
    keys = site.keys.model_copy(update={"lab": Lab.model_validate(network)})
    return site.model_copy(update={"keys": keys})


def slurm(said: str | tuple[int, str, str], torch: str = f"> {TORCH}", rc: int = 0) -> FakeSlurm:
    blocks = "".join(f"@ {node} {rc}\n{torch}\n" for node in ("gpu01", "gpu02"))
    return FakeSlurm(answers={"spread": blocks, "--kill-on-bad-exit=1": said})


def mutated(text: str, rank: int, say: str, **facts: object) -> str:
    """Change what one rank said."""
    lines = []
    for line in text.splitlines():
        said = json.loads(line[2:])
        if (said["rank"], said["say"]) == (rank, say):
            said |= facts
        lines.append(f"@ {json.dumps(said)}")
    return "\n".join(lines)


def without(text: str, rank: int, say: str = "") -> str:
    lines = [(line, json.loads(line[2:])) for line in text.splitlines()]
    kept = [o for o, said in lines if said["rank"] != rank or (say and said["say"] != say)]
    return "\n".join(kept)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_right_training_passes_with_its_speed(run_check: Runner, check: Check) -> None:
    result = run_check(check, slurm(RIGHT[check]), lab())
    assert result.status == "PASS", result.reason
    assert result.nodes == "gpu[01-02]"
    assert "no reference is known" in result.reason
    assert "the lab's nodes share one computer" in result.reason
    samples, loss = result.measurements
    assert (samples.name, samples.unit, samples.at["ranks"]) == ("samples", "samples/s", 4)
    assert samples.value > 0
    assert loss.unit == "nats/word"
    assert {one.name for one in result.properties} == {"torch", "device", "interface"}


def test_how_it_is_started(run_check: Runner) -> None:
    fake = slurm(RIGHT[DDP])
    run_check(DDP, fake, lab())
    (line,) = [line for line in fake.asked if line.startswith("srun")]
    for flag in ("--nodes=2", "--ntasks=4", "--gres=gpu:2", "--cpus-per-task=1", "python3 -c"):
        assert flag in line
    # Linux takes no word of 128 KiB or more.
    assert len(line) < 20_000


@pytest.mark.parametrize(
    ("mutation", "said"),
    [
        (
            lambda text: mutated(text, 3, "gradients", reduced="00"),
            "gradients differ between ranks: those of 3 (gpu02)",
        ),
        (
            lambda text: mutated(text, 2, "gradients", error=0.4),
            "rank 2: reduced gradients are not the mean",
        ),
        (
            lambda text: mutated(text, 2, "gradients", error=float("nan")),
            "rank 2: reduced gradients are not the mean",
        ),
        (
            lambda text: mutated(text, 1, "speed", losses=[4.3, 4.2]),
            "the loss of rank 1 does not fall: 4.3 to 4.2",
        ),
        (
            lambda text: mutated(text, 1, "speed", losses=[4.3, float("nan")]),
            "the loss of rank 1 is no number",
        ),
        (
            lambda text: mutated(text, 1, "place", visible="0"),
            "gpu01: rank 1 sees 1 GPUs (CUDA_VISIBLE_DEVICES=0), not the 2",
        ),
        (
            lambda text: mutated(text, 1, "place", visible=""),
            "rank 1 sees 0 GPUs (CUDA_VISIBLE_DEVICES=not set)",
        ),
        (lambda text: mutated(text, 2, "place", host="gpu07"), "ranks 2 ran on gpu07"),
        (lambda text: mutated(text, 2, "place", name="other"), "gpu02: calls itself other"),
        (
            lambda text: mutated(text, 2, "place", local=3),
            "gpu02: has local ranks 1,3, not 2",
        ),
        (lambda text: without(text, 3), "ranks 3 never began"),
        (
            lambda text: mutated(text, 0, "place", gpu="0000:07:00.0", gpu_numa=1),
            "rank 0 has CPUs of NUMA node 0, its GPU 0000:07:00.0 is at 1",
        ),
        (
            lambda text: mutated(
                mutated(text, 0, "place", gpu="0000:07:00.0"), 1, "place", gpu="0000:07:00.0"
            ),
            "gpu01: several ranks compute on GPU 0000:07:00.0",
        ),
    ],
)
def test_what_is_wrong_is_named(run_check: Runner, mutation: Mutation, said: str) -> None:
    result = run_check(DDP, slurm(mutation(RIGHT[DDP])), lab())
    assert result.status == "FAIL"
    assert said in result.reason


def test_parameters_that_are_not_sharded(run_check: Runner) -> None:
    result = run_check(FSDP, slurm(mutated(RIGHT[FSDP], 0, "gradients", held=108224)), lab())
    assert result.status == "FAIL"
    assert "hold" in result.reason


@pytest.mark.parametrize(
    "mutation",
    [
        lambda text: without(text, 3, "speed"),
        lambda text: without(text, 3, "gradients"),
        lambda text: without(text, 3, "end"),
        lambda _: "",
        lambda text: re.sub(r'"own":"\w+"', '"own":"0"', text),
        lambda text: text.replace('"error":0.0', '"error":'),
    ],
)
def test_what_was_not_said_is_an_error(run_check: Runner, mutation: Mutation) -> None:
    assert run_check(DDP, slurm(mutation(RIGHT[DDP])), lab()).status == "ERROR"


def test_a_job_that_fails_says_what_was_raised(run_check: Runner) -> None:
    errors = "Traceback (most recent call last):\n  x\nRuntimeError: boom\nsrun: error: gpu02: x\n"
    result = run_check(DDP, slurm((1, without(without(RIGHT[DDP], 2), 3), errors)), lab())
    assert result.status == "FAIL"
    assert "no rank began on gpu02; training ended with 1: RuntimeError: boom" in result.reason


def test_busy_nodes_are_an_error(run_check: Runner) -> None:
    busy = (1, "", "srun: error: Unable to allocate resources: Requested nodes are busy\n")
    result = run_check(DDP, slurm(busy), lab())
    assert result.status == "ERROR"
    assert "nodes busy: gpu[01-02]" in result.reason


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_no_torch_is_a_skip_that_says_how_to_get_it(run_check: Runner, check: Check) -> None:
    fake = slurm("", "> @ no torch: No module named 'torch'")
    result = run_check(check, fake, lab())
    assert result.status == "SKIP"
    assert "No module named 'torch'" in result.reason
    assert "site_verify_python" in result.reason
    assert "verify_tools_torch: true" in result.reason
    assert not [line for line in fake.asked if line.startswith("srun")]


def test_nodes_that_cannot_be_asked_are_an_error(run_check: Runner) -> None:
    assert run_check(DDP, slurm("", "! srun: error: x", rc=1), lab()).status == "ERROR"


def test_torch_on_one_node_only_fails(run_check: Runner) -> None:
    fake = slurm(RIGHT[DDP])
    fake.answers["spread"] = f"@ gpu01 0\n> {TORCH}\n@ gpu02 0\n> @ no torch: none\n"
    result = run_check(DDP, fake, lab())
    assert result.status == "FAIL"
    assert "gpu02: no torch: none, which others have" in result.reason


def test_fsdp_of_an_old_torch_is_a_skip(run_check: Runner) -> None:
    result = run_check(FSDP, slurm("", "> @ torch 2.1.2 cuda 0 gloo 1"), lab())
    assert (result.status, "torch 2.1.2 on gpu01" in result.reason) == ("SKIP", True)


def test_real_gpus_that_torch_does_not_see_fail(run_check: Runner) -> None:
    site = make_site()
    group = site.keys.node_groups["gpu"].model_copy(update={"virtual": False})
    real: dict[str, NodeGroup] = {"gpu": group}
    site = site.model_copy(update={"keys": site.keys.model_copy(update={"node_groups": real})})
    result = run_check(DDP, slurm(RIGHT[DDP]), site)
    assert result.status == "FAIL"
    assert "gpu[01-02] has GPUs, but torch 2.6.0+debian there sees none" in result.reason


def test_one_slow_node_of_three_is_named() -> None:
    text = RIGHT[DDP]
    for rank, host in enumerate(("gpu01", "gpu02", "gpu03", "gpu04")):
        text = mutated(text, rank, "place", host=host)
        text = mutated(text, rank, "speed", alone_s=0.1 if rank != 1 else 0.2)
    (culprit,) = slow_nodes(read_training(text))
    assert culprit.name == "gpu02"
    assert "200 ms a step alone, its peers 100 ms" in culprit.because


@pytest.mark.parametrize(
    ("stdout", "stderr", "version", "why_not", "asked"),
    [
        ("motd\n@ torch 2.6.0 cuda 8 gloo 0\n", "", "2.6.0", "", True),
        ("@ torch 2.6.0 cuda 0 gloo 0\n", "", "", "torch 2.6.0 is built without gloo", True),
        ("@ no torch: x\n", "", "", "no torch: x", True),
        ("", "execve(): /opt/p: No such file or directory", "", "no such Python", True),
        ("", "srun: error: down", "", "gpu01: srun: error: down", False),
    ],
)
def test_what_a_node_has(
    stdout: str, stderr: str, version: str, why_not: str, *, asked: bool
) -> None:
    found = read_torch(NodeAnswer("gpu01", 0 if version else 2, stdout, stderr))
    assert (found.version, found.why_not, found.asked) == (version, why_not, asked)


def test_prefixes_and_warnings_are_read_around() -> None:
    labelled = "".join(f"{n}: {line}\n" for n, line in enumerate(RIGHT[DDP].splitlines()))
    tagged = re.sub(r"(?m)^@", "[1,0]<stdout>:@", RIGHT[DDP])
    noisy = "UserWarning: x\n" + RIGHT[DDP].replace("\n", "\n/usr/lib/torch: W @ {\n")
    nccl = "gpu01:7:7 [0] NCCL INFO Using network Socket\n"
    whole = read_training(RIGHT[DDP])
    assert read_training(labelled) == read_training(tagged) == read_training(noisy) == whole
    assert read_training(nccl).networks == ("Socket",)
    assert len(whole.reduces) == 6


@given(
    st.text() | st.sampled_from(RIGHT[DDP].splitlines()).map(lambda line: line[: len(line) // 2])
)
def test_any_text_is_read_or_unreadable(text: str) -> None:
    try:
        read_training(text)
    except UnreadableError as error:
        assert len(str(error)) < 600  # noqa: PT017 - either is right


@given(st.integers(0, len(RIGHT[DDP])), st.characters())
def test_a_changed_character_is_read_or_unreadable(place: int, character: str) -> None:
    text = RIGHT[DDP][:place] + character + RIGHT[DDP][place + 1 :]
    with contextlib.suppress(UnreadableError):
        read_training(text)
