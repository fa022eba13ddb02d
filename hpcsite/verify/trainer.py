"""Starting `programs/train.py` through Slurm: which Python, which nodes, how many ranks."""

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files

from hpcsite.site.names import fold
from hpcsite.verify import jobs
from hpcsite.verify.cluster import Target, names
from hpcsite.verify.context import Context
from hpcsite.verify.findings import NotMeasuredError
from hpcsite.verify.parsers import UnreadableError
from hpcsite.verify.parsers.training import Training, read_training
from hpcsite.verify.spread import NodeAnswer, spread
from hpcsite.verify.transport import TIMED_OUT, Answer

FSDP_SINCE = (2, 6)
MIB_OF_RANK, MIB_OF_GPU_RANK = 768, 8192
_RUN_S, _EACH_NODE_S = 150, 0.5
_MINUTES = 6
# Linux gives ports from 32768 on to whoever asks for any.
_PORTS, _FIRST_PORT = 12000, 20000
_NO_TORCH = "no torch"
# Says what of torch a node has; a Python without it is no error.
_PROBE = """
try:
    import torch, torch.distributed as d
except ImportError as error:
    print("@ no torch:", str(error).replace(chr(10), " ")[:200])
else:
    gloo = d.is_available() and d.is_gloo_available()
    print("@ torch", torch.__version__, "cuda", torch.cuda.device_count(), "gloo", int(gloo))
"""
# Programs of many KiB are one word of a command; the last is run, as if it were a file.
_BOOT = """
import base64, json, sys, types, zlib
*modules, (name, main) = json.loads(zlib.decompress(base64.b64decode(sys.argv.pop(1))))
for module, source in modules:
    sys.modules[module] = types.ModuleType(module)
    exec(compile(source, module, "exec"), sys.modules[module].__dict__)
exec(compile(main, name, "exec"))
"""
_PROGRAMS = ("train_place", "train")


@dataclass(frozen=True)
class Torch:
    """What a node's Python has of PyTorch; `why_not` where it has none, or cannot be asked."""

    node: str
    version: str = ""
    gpus: int = 0
    why_not: str = ""
    asked: bool = True

    @property
    def number(self) -> tuple[int, ...]:
        """Major and minor version."""
        parts = self.version.split(".")[:2]
        return tuple(int(part) for part in parts if part.isdigit())


@dataclass(frozen=True)
class Plan:
    """A training job: its nodes, how many ranks on each, and the model."""

    targets: tuple[Target, ...]
    ranks: int
    gpus: int
    cpus: int
    cuda: bool
    width: int
    layers: int
    sequence: int
    batch: int
    steps: int = 30
    warmup: int = 4

    @property
    def world(self) -> int:
        """How many ranks there are."""
        return self.ranks * len(self.targets)

    def on(self, count: int) -> "Plan":
        """Return the same on the first nodes only."""
        return replace(self, targets=self.targets[:count])


@dataclass(frozen=True)
class Outcome:
    """How a training job ended: what it said, and what is wrong with the way it ended."""

    training: Training
    fault: str = ""


def python(context: Context) -> str:
    """Return the Python that compute nodes are to have torch in."""
    return context.site.keys.verify_python or "python3"


def torches(context: Context) -> dict[str, Torch]:
    """Ask every usable node once in a run what it has of PyTorch."""
    return context.shared("torch", _ask)


def _ask(context: Context) -> dict[str, Torch]:
    context.cluster.require_any()
    targets = context.cluster.targets
    gpus = [target for target in targets if target.gpus]
    others = [target for target in targets if not target.gpus]
    command = [python(context), "-c", _PROBE]
    answers: dict[str, NodeAnswer] = {}
    # In a job without GPUs, CUDA sees none.
    for chosen, flags in ((gpus, ("--gres=gpu:1", "--mem=1024M")), (others, ("--mem=1024M",))):
        if chosen:
            answers |= spread(context, chosen, command, *flags, name="torch")
    return {node: read_torch(answer) for node, answer in answers.items()}


def read_torch(answer: NodeAnswer) -> Torch:
    """Read what the probe said on one node."""
    lines = [line[2:] for line in answer.stdout.splitlines() if line.startswith("@ ")]
    said = lines[-1] if lines else ""
    words = said.split()
    if len(words) == 6 and words[0] == "torch" and words[3].isdigit():
        if words[3] == "0" and words[5] != "1":
            return Torch(answer.node, why_not=f"torch {words[1]} is built without gloo")
        return Torch(answer.node, words[1], int(words[3]))
    if said.startswith(_NO_TORCH):
        return Torch(answer.node, why_not=said)
    if answer.not_started:
        return Torch(answer.node, why_not=answer.not_started, asked=False)
    if "No such file" in answer.stderr:
        return Torch(answer.node, why_not="no such Python")
    return Torch(answer.node, why_not=f"{answer.node}: {answer.complaint}", asked=False)


def no_torch(context: Context) -> str:
    """Say that no node has torch, and how to get it."""
    reasons = dict.fromkeys(one.why_not for one in torches(context).values())
    return (
        f"{python(context)} on the compute nodes: {'; '.join(reasons)}. `site_verify_python` names "
        "a Python that has torch; `verify_tools_torch: true` makes deploy install one for CPUs"
    )


def chosen(context: Context) -> tuple[Target, ...]:
    """Return the largest set of nodes of one partition and group with the same torch; may be empty.

    Nodes where torch sees GPUs come first.
    """
    found = torches(context)
    sets: dict[tuple[str, str], list[Target]] = {}
    for target in context.cluster.targets:
        if found[target.name].version:
            sets.setdefault((target.partition, target.group), []).append(target)
    best = max(sets.values(), key=lambda one: (_sees(found, one), len(one)), default=[])
    return tuple(best)


def _sees(found: dict[str, Torch], targets: Sequence[Target]) -> bool:
    return any(found[target.name].gpus for target in targets)


def plan_of(context: Context, targets: tuple[Target, ...]) -> Plan:
    """Return how to train on nodes: a rank a GPU, or two a node where there are none.

    A lab's nodes share one computer, so a rank there gets one CPU, and a small model.
    """
    found = torches(context)
    first, virtual = targets[0], shared_hardware(context)
    cuda = _sees(found, targets)
    cpus = min(context.cluster.holds(target.name, 1)[0] for target in targets)
    if cuda:
        ranks = first.gpus
        return Plan(targets, ranks, ranks, max(cpus // ranks, 1), cuda, 1024, 4, 128, 16)
    ranks = min(2, cpus)
    gpus = min(ranks, first.gpus)
    if virtual:
        return Plan(targets, ranks, gpus, 1, cuda, 64, 2, 32, 16)
    return Plan(targets, ranks, gpus, max(cpus // ranks, 1), cuda, 256, 4, 64, 16)


def shared_hardware(context: Context) -> bool:
    """Whether the nodes have no hardware of their own: those of a lab share one computer."""
    return context.site.keys.lab is not None


def train(context: Context, plan: Plan, mode: str) -> Outcome:
    """Train; raises `NotMeasuredError` where the job did not start, or said what cannot be read."""
    answer = context.user(
        argv(context, plan, mode),
        f"{mode}-{len(plan.targets)}",
        timeout_s=context.options.wait_s + _RUN_S + _EACH_NODE_S * len(plan.targets),
    )
    nodes = names(plan.targets)
    if not answer.ok and jobs.SRUN_BUSY in answer.stderr:
        raise jobs.not_started(context, nodes)
    try:
        said = read_training(answer.stdout)
    except UnreadableError as error:
        raise NotMeasuredError(str(error)) from error
    return Outcome(said, "" if answer.ok else _why_ended(context, answer, plan, said))


def argv(context: Context, plan: Plan, mode: str) -> list[str]:
    """Return the srun that starts all ranks, with the programs in it: nodes may share no folder."""
    nodes = names(plan.targets)
    memory = (MIB_OF_GPU_RANK if plan.cuda else MIB_OF_RANK) * plan.ranks
    least = min(context.cluster.nodes[node].memory_mib for node in nodes)
    options = {
        "mode": mode,
        "addresses": _addresses(context, nodes),
        "port": _FIRST_PORT + zlib.crc32(f"{context.core.run_id}{mode}{nodes}".encode()) % _PORTS,
        "width": plan.width,
        "layers": plan.layers,
        "sequence": plan.sequence,
        "batch": plan.batch,
        "steps": plan.steps,
        "warmup": plan.warmup,
        "threads": plan.cpus,
        "rate": 0.0005 if plan.width > 64 else 0.01,
    }
    return [
        "srun",
        *context.job_flags(None, minutes=_MINUTES, memory_mib=min(memory, least)),
        f"--immediate={max(int(context.patience(len(nodes))), 1)}",
        f"--partition={plan.targets[0].partition}",
        f"--nodelist={fold(nodes)}",
        f"--nodes={len(nodes)}",
        f"--ntasks={plan.world}",
        f"--ntasks-per-node={plan.ranks}",
        f"--cpus-per-task={plan.cpus}",
        *([f"--gres=gpu:{plan.gpus}"] if plan.gpus else []),
        "--distribution=block",
        "--input=none",
        "--kill-on-bad-exit=1",
        python(context),
        "-c",
        _BOOT,
        _packed(),
        json.dumps(options),
    ]


def _packed() -> str:
    folder = files("hpcsite.verify") / "programs"
    package = "hpcsite.verify.programs"
    sources = [(f"{package}.{name}", (folder / f"{name}.py").read_text()) for name in _PROGRAMS]
    return base64.b64encode(zlib.compress(json.dumps(sources).encode(), 9)).decode()


def _addresses(context: Context, nodes: Sequence[str]) -> dict[str, str]:
    """Return the addresses of nodes that are reached by something else than their names."""
    known = ((node, context.cluster.nodes[node].address) for node in nodes)
    return {node: address for node, address in known if address not in ("", node)}


def _why_ended(context: Context, answer: Answer, plan: Plan, said: Training) -> str:
    """Say how a job ended that did not end well, and which ranks were never there."""
    nodes = names(plan.targets)
    ended = f"training ended with {answer.rc}: {_first_error(answer)}"
    if answer.rc == TIMED_OUT:
        ended = f"training did not end within {answer.seconds:.0f} s"
    began = {place.host for place in said.places.values()}
    if missing := [node for node in nodes if began and node not in began]:
        ended = f"no rank began on {fold(missing)}; {ended}"
    down = jobs.down_now(context, list(nodes))
    return f"{down}; {ended}" if down else ended


def _first_error(answer: Answer) -> str:
    """Return the last line of the first traceback, which says what was raised; else any error."""
    lines = [line.strip() for line in answer.stderr.splitlines() if line.strip()]
    raised = [line for line in lines if line.split(":")[0].endswith(("Error", "Exception"))]
    errors = raised or [line for line in lines if "error" in line.lower()]
    return (errors[0] if errors else answer.complaint)[:300]
