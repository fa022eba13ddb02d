"""Suite `slurm`: a job gets the GPUs that it asked for, and no two jobs get the same one."""

import re
from collections import Counter
from collections.abc import Iterable

from hpcsite.slurm.job_records import SlurmJob
from hpcsite.verify import jobs
from hpcsite.verify.claims import Claim, Mode
from hpcsite.verify.cluster import Cluster, Target, names
from hpcsite.verify.context import Context
from hpcsite.verify.engine import Check
from hpcsite.verify.findings import Finding, NotMeasuredError, Tally
from hpcsite.verify.spread import NodeAnswer, spread
from hpcsite.verify.suites import needs

# A job in excess must still wait after so long; slurmctld schedules at least every 3 s
# (SchedulerParameters batch_sched_delay, slurm.conf(5)).
_HOLDS_S = 4.0
_RELEASED_WITHIN_S = 20.0
_WAITS_FOR_A_GPU = frozenset(("Resources", "Priority"))
_MEMORY_MIB = 64
# A job waits for these whatever is free: limits of its user, account or QOS (squeue(1)).
_LIMITS = ("Assoc", "QOS", "Max")
_SLEEP = "exec sleep 300"
# The number of the device file, which two jobs cannot share. CUDA_VISIBLE_DEVICES counts from 0 in
# each job where cgroups hide the other devices (gres.html, GPU Management).
_SHOW = """
for job in "$@"; do
  srun --jobid="$job" --overlap --input=none --ntasks=1 sh -c '
    echo "job=$SLURM_JOB_ID node=$SLURMD_NODENAME devices=${SLURM_STEP_GPUS:-$CUDA_VISIBLE_DEVICES}"
  ' &
done
wait
"""
_LINE = re.compile(r"^job=(\d+) node=(\S+) devices=(\S*)$", re.MULTILINE)


def find_binding(context: Context) -> Finding:
    """See two GPUs in a job of two (one, where a node has no more), all different."""
    targets = context.cluster.gpu_targets
    tally = Tally(unknown=list(context.cluster.reasons(_down(context))))
    for count in sorted({min(2, target.gpus) for target in targets}):
        asked = [target for target in targets if min(2, target.gpus) == count]
        command = ["sh", "-c", 'echo "devices=$CUDA_VISIBLE_DEVICES"']
        answers = spread(context, asked, command, f"--gres=gpu:{count}", name=f"gpus-{count}")
        for node, answer in answers.items():
            if answer.not_started:
                tally.unknown.append(answer.not_started)
            elif fault := binding_fault(answer, count):
                tally.wrong.append(f"{node}: {fault}")
    return tally.finding(context.cluster.gpu_declared)


def _down(context: Context) -> list[str]:
    usable = names(context.cluster.gpu_targets)
    return [node for node in context.cluster.gpu_declared if node not in usable]


def binding_fault(answer: NodeAnswer, count: int) -> str:
    """Say what is wrong with what a job of `count` GPUs saw."""
    found = re.search(r"^devices=(\S*)$", answer.stdout, re.MULTILINE)
    if found is None:
        return f"the job did not run: {answer.complaint}"
    devices = split_devices(found[1])
    if len(set(devices)) == len(devices) == count:
        return ""
    seen = found[1] or "nothing"
    return f"a job of {count} GPUs has {seen} in CUDA_VISIBLE_DEVICES"


def split_devices(text: str) -> list[str]:
    """Devices of a CUDA_VISIBLE_DEVICES value: numbers, or the names of GPUs or MIG parts."""
    return [device for device in text.split(",") if device and device != "NoDevFiles"]


def too_small(cluster: Cluster, node: str) -> str:
    """Why one-CPU jobs cannot take all GPUs of a node; empty if they can, or it is not known."""
    group = cluster.group_of(node)[1]
    if node not in cluster.nodes or not group.gpus:
        return ""
    gpus = group.gpus.count
    jobs_at_once, limit = cluster.holds(node, _MEMORY_MIB)
    if jobs_at_once >= gpus:
        return ""
    return f"{node} has {gpus} GPUs, but with {limit} it holds {jobs_at_once} single-GPU jobs"


def fillable(context: Context) -> str:
    """Need of `gpu_fill`: a node with GPUs that single-GPU jobs can fill."""
    cluster = context.cluster
    small = [too_small(cluster, node) for node in cluster.gpu_declared]
    return small[0] if all(small) else ""


def fill_targets(cluster: Cluster) -> list[Target]:
    """One node of each group, of those that can be filled."""
    first: dict[str, Target] = {}
    for target in cluster.gpu_targets:
        if not too_small(cluster, target.name):
            first.setdefault(target.group, target)
    return list(first.values())


def find_fill(context: Context) -> Finding:
    """As many single-GPU jobs as a node has GPUs fill it, and one more waits for the next."""
    targets = fill_targets(context.cluster)
    needs.require_nodes(context)
    if not targets:
        why = "; ".join(context.cluster.blocked)
        raise NotMeasuredError(f"no node with GPUs can be used: {why}")
    tally = Tally()
    for target in targets:
        _fill(context, target, tally)
    return tally.finding(names(tuple(targets)), reason=_left_out(context.cluster))


def _left_out(cluster: Cluster) -> str:
    """Say of each group whose nodes cannot be filled why, of one of its nodes."""
    groups = {cluster.group_of(node)[0]: too_small(cluster, node) for node in cluster.gpu_declared}
    return "; ".join(why for why in groups.values() if why)


def _fill(context: Context, target: Target, tally: Tally) -> None:
    wait_idle(context, target)
    ids: list[int] = []
    try:
        ids += _single_gpu_jobs(context, target, target.gpus)
        running = jobs.wait_started(context, ids)
        if fault := not_filled(running, target):
            if held_by_limits(running):
                raise NotMeasuredError(f"{fault}; that is a limit of Slurm's for the user")
            refuse_if_used(context, target, running)
            tally.wrong.append(fault)
            return
        ids += _single_gpu_jobs(context, target, 1)
        shown = context.user(["bash", "-c", _SHOW, "show", *map(str, ids[:-1])], "devices")
        tally.wrong += device_faults(shown.stdout, ids[:-1], target)
        _excess(context, target, ids, tally)
    finally:
        jobs.cancel(context, ids)


def _single_gpu_jobs(context: Context, target: Target, count: int) -> list[int]:
    flags = ("--gres=gpu:1", "--cpus-per-task=1")
    return jobs.submit(
        context, target, _SLEEP, *flags, count=count, minutes=5, memory_mib=_MEMORY_MIB
    )


def wait_idle(context: Context, target: Target) -> None:
    """Wait until a node runs nothing; raises `NotMeasuredError` if it goes on or goes down."""
    for _ in range(max(int(context.options.wait_s), 1)):
        node = jobs.nodes_now(context, [target.name])[target.name]
        if node.idle:
            return
        if not node.usable:
            break
        context.pause(1)
    raise jobs.not_started(context, [target.name])


def not_filled(running: jobs.Jobs, target: Target) -> str:
    """Why the node is not full of single-GPU jobs; empty if it is."""
    up = sum(job.running for job in running.values())
    if up == target.gpus:
        return ""
    others = Counter(f"{job.state} ({job.reason})" for job in running.values() if not job.running)
    rest = ", ".join(f"{count} {state}" for state, count in others.items()) or "the rest is gone"
    return f"{up} of {target.gpus} single-GPU jobs run on the empty {target.name}: {rest}"


def held_by_limits(running: jobs.Jobs) -> bool:
    """Whether jobs wait although the node has what they ask for."""
    return any(
        job.state == "PENDING" and job.reason.startswith(_LIMITS) for job in running.values()
    )


def refuse_if_used(context: Context, target: Target, running: jobs.Jobs) -> None:
    """Raise `NotMeasuredError` if others took part of the node in the meantime, or it went down."""
    node = jobs.nodes_now(context, [target.name])[target.name]
    ours = sum(job.tres.get("gres/gpu", 0) for job in running.values() if job.running)
    if not node.usable or not ours or node.gres_in_use.get("gpu", 0) > ours:
        raise jobs.not_started(context, [target.name])


def device_faults(text: str, ids: Iterable[int], target: Target) -> list[str]:
    """Say what is wrong with the devices that the jobs on a full node see."""
    seen = {int(job): (node, split_devices(devices)) for job, node, devices in _LINE.findall(text)}
    faults = []
    if silent := [str(i) for i in ids if i not in seen]:
        faults.append(f"jobs {', '.join(silent)} on {target.name} did not tell their device")
    for job, (node, devices) in seen.items():
        if len(devices) != 1 or node != target.name:
            what = ",".join(devices) or "no device"
            faults.append(f"single-GPU job {job} sees {what} on {node}")
    count = Counter(device for _, devices in seen.values() for device in devices)
    if twice := [device for device, times in count.items() if times > 1]:
        faults.append(f"device {', '.join(twice)} of {target.name} was given to more than one job")
    return faults


def _excess(context: Context, target: Target, ids: list[int], tally: Tally) -> None:
    """Hold one job too many against what it must do: wait, then run when a GPU is free."""
    *filling, excess = ids
    job = jobs.wait(context, [excess], _decided, _HOLDS_S + jobs.POLL_S).get(excess)
    if fault := excess_fault(job, target):
        tally.wrong.append(fault)
        return
    jobs.cancel(context, filling[:1])
    released = jobs.wait(context, [excess], lambda job: job.running, _RELEASED_WITHIN_S)
    if not (excess in released and released[excess].running):
        tally.wrong.append(
            f"a GPU of {target.name} became free, but the job that waited for it did not start "
            f"within {_RELEASED_WITHIN_S:.0f} s"
        )


def _decided(job: SlurmJob) -> bool:
    """Whether the scheduler has looked at a job."""
    return job.state != "PENDING" or job.reason in _WAITS_FOR_A_GPU


def excess_fault(job: SlurmJob | None, target: Target) -> str:
    """Say what is wrong with the job for which no GPU is left; empty if it waits for one."""
    if job is None:
        return f"Slurm lost a job that should wait for {target.name}"
    if job.running:
        number = target.gpus + 1
        return f"single-GPU job {number} runs on {target.name}, which has {target.gpus} GPUs"
    if job.state == "PENDING" and job.reason in _WAITS_FOR_A_GPU:
        return ""
    return f"the job in excess on {target.name} is {job.state} ({job.reason}), not waiting"


def _whole(context: Context) -> Claim:
    targets = fill_targets(context.cluster)
    return Claim(frozenset(names(tuple(targets))), Mode.WHOLE)


def _light(context: Context) -> Claim:
    return Claim(frozenset(context.cluster.gpu_declared), Mode.LIGHT)


CHECKS = (
    Check(
        "slurm",
        "gpu_fill",
        "Single-GPU jobs fill a node with different devices; one more waits for a free GPU.",
        find_fill,
        (needs.gpus, fillable),
        _whole,
    ),
    Check(
        "slurm",
        "gpu_binding",
        "A job of two GPUs sees two devices, on every node with GPUs.",
        find_binding,
        (needs.gpus,),
        _light,
    ),
)
