"""Suite `scaling`: what 1, 2, 4 … N nodes do together, each with the same work (weak scaling).

The work is training by PyTorch where the nodes have it, else an MPI program of hpcsite's own that
computes and reduces. In a lab the nodes share one computer: more of them are slower by nature, so
that nothing is judged there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hpcsite.site.names import fold
from hpcsite.verify import trainer
from hpcsite.verify.cluster import Target, names
from hpcsite.verify.context import Context
from hpcsite.verify.engine import Check, Tag
from hpcsite.verify.findings import Finding, NotMeasuredError, Tally
from hpcsite.verify.judge.scaling import (
    GOOD,
    WASTE,
    AlphaBeta,
    Grade,
    Scaling,
    Verdict,
    levels,
    of_all_reduces,
    ring_all_reduce_s,
    verdict,
)
from hpcsite.verify.parsers import UnreadableError
from hpcsite.verify.parsers.steps import read_steps
from hpcsite.verify.results import Direction, Measurement, Reference, Status
from hpcsite.verify.suites import mpi, needs
from hpcsite.verify.suites.training import busy_nodes

# Steps, and the tries to start Open MPI on many nodes.
_RUN_S = 120
_REMEDY = (
    "look at `fabric` and `nccl` for slow pairs, at which network NCCL or MPI takes, and at "
    "`training` for a slow node"
)
_SOURCE = "hpcsite: below 1.5 of two nodes, a quarter of all node-hours brings nothing"
At = dict[str, str | int | float]


class NoProgramError(Exception):
    """There is neither PyTorch nor an MPI compiler; the message says how to get one."""


@dataclass(frozen=True)
class Level:
    """What so many nodes did: work a second, seconds a step, bytes reduced in it, all-reduces."""

    nodes: tuple[str, ...]
    value: float
    step_s: float
    bytes: int
    reduces: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Work:
    """A program and the nodes for it; `unit` of its work a second."""

    name: str
    unit: str
    targets: tuple[Target, ...]
    run: Callable[[tuple[Target, ...]], Level]


def find_scaling(context: Context) -> Finding:
    """Run the same work on more and more nodes."""
    try:
        work = _work(context)
        found = [work.run(work.targets[:count]) for count in levels(len(work.targets))]
    except NoProgramError as missing:
        return Finding(Status.SKIP, str(missing), names(context.cluster.targets))
    verdicts = verdict([Scaling(len(level.nodes), level.value) for level in found])
    model = of_all_reduces(found[1].reduces, len(found[1].nodes))
    judged = not trainer.shared_hardware(context)
    tally = Tally()
    if judged:
        tally.wrong += [
            f"{said_of(one)}: {one.grade}" for one in verdicts if one.grade is Grade.WASTE
        ]
    return tally.finding(
        names(work.targets),
        reason=summary(work, verdicts, judged=judged),
        measurements=measurements(work, found, verdicts, model, judged=judged),
        remedy=_REMEDY,
    )


def _work(context: Context) -> Work:
    """Choose training, where two nodes have PyTorch, else the MPI program."""
    targets = trainer.chosen(context)
    if len(targets) > 1:
        plan = trainer.plan_of(context, targets)
        return Work("training", "samples/s", targets, lambda few: _trained(context, plan, few))
    targets = context.cluster.together(2)
    return Work("MPI", "steps/s", targets, lambda few: _stepped(context, few))


def _trained(context: Context, plan: trainer.Plan, targets: tuple[Target, ...]) -> Level:
    outcome = trainer.train(context, plan.on(len(targets)), "ddp")
    said = outcome.training
    world = plan.on(len(targets)).world
    if outcome.fault or len(said.speeds) < world or not said.gradients:
        why = outcome.fault or "not every rank said how it trained"
        raise NotMeasuredError(f"on {fold(names(targets))}: {why}")
    return Level(
        names(targets),
        min(speed.samples_s for speed in said.speeds.values()),
        max(speed.step_s for speed in said.speeds.values()),
        next(iter(said.gradients.values())).bytes,
        tuple((one.bytes, one.seconds) for one in said.reduces),
    )


def _stepped(context: Context, targets: tuple[Target, ...]) -> Level:
    built = mpi.programs(context, "scaling")
    if built.missing:
        raise NoProgramError(f"{trainer.no_torch(context)}; and {mpi.no_compiler(context)}")
    each = 2 if all(target.cpus > 1 for target in targets) else 1
    answer = mpi.run(context, targets, "scaling", each * len(targets), runs_s=_RUN_S)
    where = f"on {fold(names(targets))}: "
    if isinstance(answer, Finding):
        raise NotMeasuredError(where + answer.reason)
    try:
        said = read_steps(answer.stdout)
    except UnreadableError as error:
        raise NotMeasuredError(where + str(error)) from error
    if said.errors or said.ranks != each * len(targets):
        raise NotMeasuredError(
            f"{where}{said.errors} wrong sums, {said.ranks} ranks of {each * len(targets)}"
        )
    value = said.ranks / said.step_s
    return Level(names(targets), value, said.step_s, said.bytes, said.reduces)


def said_of(one: Verdict) -> str:
    """Say what a number of nodes reached, and what that costs."""
    text = f"{one.nodes} nodes do {one.speed_up:.2f} times as much as one ({one.efficiency:.0%})"
    if one.grade is Grade.GOOD:
        return text
    whole = one.nodes * 24
    return f"{text}, {one.lost_node_hours:.0f} of {whole} node-hours a day are lost"


def summary(work: Work, verdicts: Sequence[Verdict], *, judged: bool) -> str:
    """Say how it scales, or why that is not judged."""
    last = verdicts[-1]
    if not judged:
        counts = ", ".join(str(one.nodes) for one in verdicts)
        why = "not judged, since the lab's nodes share one computer"
        return f"{work.name} ran on {counts} nodes; {why}"
    return f"{work.name}: {said_of(last)}: {last.grade}"


def predicted(first: Level, level: Level, model: AlphaBeta) -> float:
    """Return what the model expects: one node's own step, then an all-reduce between the nodes.

    Training reduces while it still computes, so that it can be faster than this.
    """
    count = len(level.nodes)
    step_s = first.step_s + ring_all_reduce_s(model, count, level.bytes)
    return first.value * count * first.step_s / step_s


def measurements(
    work: Work,
    found: Sequence[Level],
    verdicts: Sequence[Verdict],
    model: AlphaBeta | None,
    *,
    judged: bool,
) -> list[Measurement]:
    """Return work a second, speed-up, efficiency, its cost and what was expected, by nodes."""
    measured = []
    for level, one in zip(found, verdicts, strict=True):
        at: At = {"node_count": one.nodes, "nodes": fold(level.nodes), "work": work.name}
        measured.append(_measurement("work", level.value, work.unit, at))
        if level is found[0]:
            continue
        measured.append(_measurement("speed_up", one.speed_up, "x", at))
        reference = _reference() if judged else None
        measured.append(_measurement("efficiency", 100 * one.efficiency, "%", at, reference))
        if judged:
            lost = one.lost_node_hours
            measured.append(_measurement("lost", lost, "node-hours/day", at, lower=True))
        if model:
            value = predicted(found[0], level, model)
            measured.append(_measurement("work_expected", value, work.unit, at))
    if model:
        at = {"nodes": fold(found[1].nodes), "work": work.name}
        measured.append(_measurement("alpha", model.alpha_s * 1e6, "us", at, lower=True))
        measured.append(_measurement("beta", model.beta_bytes_s / 1e9, "GB/s", at))
    return measured


def _reference() -> Reference:
    return Reference(value=100 * WASTE, tolerance=0, unit="%", source=_SOURCE)


def _measurement(
    name: str,
    value: float,
    unit: str,
    at: At,
    reference: Reference | None = None,
    *,
    lower: bool = False,
) -> Measurement:
    return Measurement(
        name=name,
        value=float(f"{value:.5g}"),
        unit=unit,
        direction=Direction.LOWER if lower else Direction.HIGHER,
        at=at,
        reference=reference,
    )


CHECKS = (
    Check(
        "scaling",
        "weak",
        f"More nodes do more, with the same work for each: {GOOD:.0%} of N times one node is good, "
        f"less than {WASTE:.0%} is waste.",
        find_scaling,
        (needs.compute_nodes(2),),
        busy_nodes,
        frozenset((Tag.ACCEPTANCE,)),
    ),
)
