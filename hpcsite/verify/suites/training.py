"""Suite `training`: a small transformer is trained by PyTorch through Slurm, as a user would.

What counts is that it is right: every rank where Slurm put it, gradients that are the mean of all
ranks' and the same on each, a loss that falls. How fast it went is measured, and held against
nothing: no reference is known for this model.
"""

import math
from collections.abc import Sequence
from statistics import median

from hpcsite.site.names import fold
from hpcsite.verify import trainer
from hpcsite.verify.claims import Claim, Mode
from hpcsite.verify.cluster import names
from hpcsite.verify.context import Context
from hpcsite.verify.engine import Check, Tag
from hpcsite.verify.findings import Finding, NotMeasuredError, Tally
from hpcsite.verify.judge.outliers import outliers
from hpcsite.verify.parsers.training import Training
from hpcsite.verify.results import (
    Certainty,
    Culprit,
    CulpritKind,
    Direction,
    Measurement,
    Status,
)
from hpcsite.verify.suites import needs
from hpcsite.verify.suites.training_places import place_faults, properties, ranks_of
from hpcsite.verify.trainer import Plan

# Sums of 32-bit floats in another order differ in the last bits; without one of two ranks' part
# they differ by about as much as they are.
_GRADIENTS_WITHIN = 0.01
# The rule is learnt within some steps; a loss that only wavers is above this part of the first.
_LOSS_FALLS_TO = 0.5
_REMEDY_GPU = (
    "let gres.conf say which cores are near each GPU (`AutoDetect=nvml`), or start ranks with "
    "`--gpu-bind=closest`"
)


def find_ddp(context: Context) -> Finding:
    """Train with DistributedDataParallel."""
    return _find(context, "ddp")


def find_fsdp(context: Context) -> Finding:
    """Train with FSDP."""
    return _find(context, "fsdp")


def _find(context: Context, mode: str) -> Finding:
    found = trainer.torches(context)
    targets = trainer.chosen(context)
    tally = Tally()
    if not targets:
        tally.unknown += [one.why_not for one in found.values() if not one.asked]
        if tally.unknown:
            return tally.finding(found)
        return Finding(Status.SKIP, trainer.no_torch(context), tuple(found))
    nodes = names(targets)
    oldest = min((found[node] for node in nodes), key=lambda one: one.number)
    if mode == "fsdp" and oldest.number < trainer.FSDP_SINCE:
        why = f"torch {oldest.version} on {oldest.node} has no fully_shard, which 2.6 brought"
        return Finding(Status.SKIP, why, nodes)
    tally.wrong += uneven(context, found, nodes)
    tally.unknown += [one.why_not for one in found.values() if not one.asked]
    plan = trainer.plan_of(context, targets)
    outcome = trainer.train(context, plan, mode)
    said = outcome.training
    if outcome.fault:
        tally.wrong.append(outcome.fault)
    elif missing := sorted(set(range(plan.world)) - said.ended):
        tally.unknown.append(f"no word of the end from ranks {ranks_of(missing)}")
    tally.wrong += place_faults(plan, said)
    remedy = _REMEDY_GPU if any("NUMA" in wrong for wrong in tally.wrong) else ""
    judge_gradients(plan, mode, said, tally)
    judge_losses(plan, said, tally)
    culprits = [] if trainer.shared_hardware(context) else slow_nodes(said)
    tally.wrong += [f"{one.name} computes slower than its peers: {one.because}" for one in culprits]
    return tally.finding(
        nodes,
        reason=summary(context, plan, mode, said),
        measurements=measured(plan, mode, said),
        properties=properties(said),
        culprits=culprits,
        remedy=remedy,
    )


def uneven(context: Context, found: dict[str, trainer.Torch], nodes: Sequence[str]) -> list[str]:
    """Say which nodes of the same group have another torch, or none, or see no GPU of theirs."""
    group = {target.name for target in context.cluster.targets if target.group}
    peers = {context.cluster.group_of(node)[0] for node in nodes}
    mates = [node for node in group if context.cluster.group_of(node)[0] in peers]
    faults: dict[str, list[str]] = {}
    for node in sorted(mates):
        if not found[node].version and found[node].asked:
            faults.setdefault(f": {found[node].why_not}, which others have", []).append(node)
    versions = {found[node].version for node in nodes}
    if len(versions) > 1:
        for node in nodes:
            faults.setdefault(f" has torch {found[node].version}, others another", []).append(node)
    for node in nodes:
        group_of = context.cluster.group_of(node)[1]
        if group_of.gpus and not group_of.virtual and not found[node].gpus:
            why = f" has GPUs, but torch {found[node].version} there sees none"
            faults.setdefault(why, []).append(node)
    return [f"{fold(of)}{why}" for why, of in faults.items()]


def judge_gradients(plan: Plan, mode: str, said: Training, tally: Tally) -> None:
    """Hold the reduced gradients against the mean, and those of each rank against the others'."""
    found = said.gradients
    if len(found) < plan.world:
        if not tally.wrong:
            tally.unknown.append("not every rank said what gradients it has")
        return
    by_digest: dict[str, list[int]] = {}
    for rank, one in sorted(found.items()):
        by_digest.setdefault(one.reduced, []).append(rank)
    if len(by_digest) > 1:
        fewest = min(by_digest.values(), key=len)
        hosts = fold({said.places[rank].host for rank in fewest if rank in said.places})
        tally.wrong.append(
            f"gradients differ between ranks: those of {ranks_of(fewest)} ({hosts}) from others'"
        )
    worst = max(found.values(), key=lambda one: math.inf if math.isnan(one.error) else one.error)
    if not worst.error <= _GRADIENTS_WITHIN:
        tally.wrong.append(
            f"rank {worst.rank}: reduced gradients are not the mean of all ranks', but off by "
            f"{worst.error:.2g} of the largest"
        )
    if plan.world > 1 and len({one.own for one in found.values()}) == 1:
        tally.unknown.append("all ranks had the same gradients before, so nothing was proved")
    held, total = sum(one.held for one in found.values()), worst.total
    if mode == "fsdp" and held != total:
        tally.wrong.append(f"the ranks hold {held} parameters together, the model has {total}")


def judge_losses(plan: Plan, said: Training, tally: Tally) -> None:
    """See that the loss of each rank falls."""
    if len(said.speeds) < plan.world:
        if not tally.wrong:
            tally.unknown.append("not every rank said how it trained")
        return
    for rank, speed in sorted(said.speeds.items()):
        first, last = speed.losses[0], speed.losses[-1]
        if not all(map(math.isfinite, speed.losses)):
            tally.wrong.append(f"the loss of rank {rank} is no number")
        elif not last < _LOSS_FALLS_TO * first:
            tally.wrong.append(f"the loss of rank {rank} does not fall: {first:g} to {last:g}")


def slow_nodes(said: Training) -> list[Culprit]:
    """Nodes whose ranks take longer than their peers for a step that needs nobody else."""
    by_host: dict[str, list[float]] = {}
    for rank, speed in said.speeds.items():
        if rank in said.places:
            by_host.setdefault(said.places[rank].host, []).append(speed.alone_s)
    values = {host: max(seconds) for host, seconds in by_host.items()}
    usual = median(values.values()) if values else 0.0
    return [
        Culprit(
            kind=CulpritKind.NODE,
            name=host,
            nodes=host,
            certainty=Certainty.LIKELY,
            because=f"{values[host] * 1e3:.3g} ms a step alone, its peers {usual * 1e3:.3g} ms",
        )
        for host in outliers(values, Direction.LOWER, floor=0.1)
    ]


def measured(plan: Plan, mode: str, said: Training) -> list[Measurement]:
    """Return samples a second of all ranks, by the slowest of them, and the loss at the end."""
    if not said.speeds:
        return []
    at: dict[str, str | int | float] = {
        "nodes": fold(names(plan.targets)),
        "ranks": plan.world,
        "batch": plan.batch,
        "mode": mode,
    }
    slowest = min(speed.samples_s for speed in said.speeds.values())
    losses = [speed.losses[-1] for speed in said.speeds.values()]
    found = [_measurement("samples", slowest, "samples/s", Direction.HIGHER, at)]
    if all(map(math.isfinite, losses)):
        found.append(_measurement("loss", max(losses), "nats/word", Direction.LOWER, at))
    return found


def _measurement(
    name: str, value: float, unit: str, direction: Direction, at: dict[str, str | int | float]
) -> Measurement:
    # As many digits as mean something, also of a loss near zero.
    return Measurement(
        name=name, value=float(f"{value:.5g}"), unit=unit, direction=direction, at=at
    )


def summary(context: Context, plan: Plan, mode: str, said: Training) -> str:
    """Say what was trained on, and that the speed is held against nothing."""
    kind = "NCCL on GPUs" if plan.cuda else "gloo on CPUs"
    lab = ", and the lab's nodes share one computer" if trainer.shared_hardware(context) else ""
    speeds = [speed.samples_s for speed in said.speeds.values()]
    fast = f"{min(speeds):.4g} samples/s, " if speeds else ""
    return (
        f"{mode.upper()} over {kind}, {plan.world} ranks on {len(plan.targets)} nodes: {fast}"
        f"which no reference is known for{lab}"
    )


def busy_nodes(context: Context) -> Claim:
    """All nodes that training may run on: which have torch is known only later."""
    try:
        context.cluster.require_any()
    except NotMeasuredError:
        return Claim()
    return Claim(frozenset(names(context.cluster.targets)), Mode.BUSY)


CHECKS = (
    Check(
        "training",
        "ddp",
        "PyTorch trains with DDP over all nodes: each rank in its place, gradients right and the "
        "same on all, and the loss falls.",
        find_ddp,
        (needs.compute_nodes(1),),
        busy_nodes,
        frozenset((Tag.ACCEPTANCE,)),
    ),
    Check(
        "training",
        "fsdp",
        "PyTorch trains with the model sharded over all ranks (FSDP), and the loss falls.",
        find_fsdp,
        (needs.compute_nodes(1),),
        busy_nodes,
        frozenset((Tag.ACCEPTANCE,)),
    ),
)
