"""Suite `isolation`: the kernel keeps a job to the devices, the memory and the cores it was given.

Asked of the kernel itself, not of what Slurm says that it set: a job tries to get what is not its
own. Where a site uses no cgroups there is nothing to prove, which is a SKIP and never a PASS.
"""

from collections.abc import Callable, Iterable

from hpcsite.site.names import fold
from hpcsite.verify import jobs
from hpcsite.verify.claims import Claim, Mode
from hpcsite.verify.cluster import Target
from hpcsite.verify.context import Context
from hpcsite.verify.engine import Check
from hpcsite.verify.findings import Finding, Tally
from hpcsite.verify.spread import NodeAnswer
from hpcsite.verify.suites import needs
from hpcsite.verify.suites.confined import JobSaid, both, read_jobs
from hpcsite.verify.suites.isolation_faults import (
    MEMORY_MIB,
    OVER_MIB,
    UNDER_MIB,
    Faults,
    core_faults,
    device_faults,
    memory_faults,
)

_DEVICES = """
prefix=PREFIX count=COUNT
set -- "$prefix"[0-9]*
i=0
while [ $i -lt $count ]; do
  case " $* " in *" $prefix$i "*) ;; *) set -- "$@" "$prefix$i" ;; esac
  i=$((i + 1))
done
for file in "$@"; do
  case ${file#"$prefix"} in *[!0-9]*) continue ;; esac
  if [ ! -e "$file" ]; then say "device=$file missing"; continue; fi
  if why=$( { exec 3<"$file"; } 2>&1 ); then why=opened; fi
  say "device=$file ${why##*: }"
done
"""
_MEMORY = f"""
folder=/sys/fs/cgroup$own
while [ "$folder" != /sys/fs/cgroup ] && [ -n "$folder" ]; do
  for limit in memory.max memory.swap.max; do
    [ -r "$folder/$limit" ] && read -r most <"$folder/$limit" && [ "$most" != max ] &&
      say "limit=$folder/$limit $most"
  done
  folder=${{folder%/*}}
done
while read -r kind amount _; do
  [ "$kind" = SwapTotal: ] && say "swap_kib=$amount"
done </proc/meminfo
case $name in over) mib={OVER_MIB} ;; *) mib={UNDER_MIB} ;; esac
dd if=/dev/zero of=/dev/null bs="$mib"M count=1 iflag=fullblock 2>&1 && say "took=$mib"
"""
# By grep: dash reads by single bytes, to which the kernel answers with nothing in these files.
# The second try asks for every CPU of the node. A cpuset cuts that down; an affinity does not.
_CORES = """
unset OMP_NUM_THREADS OMP_THREAD_LIMIT
allowed() {
  while read -r key list; do
    [ "$key" = Cpus_allowed_list: ] && say "$1=$list"
  done </proc/self/status
}
start=$(date +%s)
allowed allowed
say "nproc=$(nproc)"
read -r online </sys/devices/system/cpu/online
say "online=$online"
taskset -cp "$online" $$ >/dev/null 2>&1; say "taskset=$?"
allowed widened
grep -H . /sys/devices/system/cpu/cpu[0-9]*/topology/thread_siblings_list |
while IFS=: read -r file siblings; do
  cpu=${file%/topology/*}
  say "core=${cpu##*cpu} $siblings"
done
sleep HOLD
say "from=$start to=$(date +%s)"
"""
# So long two jobs of one core stay, to be there at the same time.
_HOLD_S = 8


def cgroups(context: Context) -> str:
    """Need of every check here: the site has its jobs confined by cgroups."""
    declared = context.site.keys.slurm_process_tracking
    found = context.cluster.config.get("ProctrackType", "")
    if declared == "linuxproc" or (declared == "auto" and found != "proctrack/cgroup"):
        return (
            f"no cgroups on these hosts: site_slurm_process_tracking is {declared}, and Slurm "
            f"follows processes by {found or 'nothing that it names'}"
        )
    return ""


def cores_are_handed_out(context: Context) -> str:
    """Need of `cores`: Slurm gives jobs single cores, and some node of the site has two."""
    types = context.cluster.config.get("SelectTypeParameters", "").upper()
    if not any(word in types for word in ("CR_CORE", "CR_CPU")):
        return (
            f"SelectTypeParameters is {types or 'not set'}: Slurm hands out more than single cores"
        )
    nodes = context.cluster.nodes
    # What Slurm does not know is for the check to name.
    many = any(n not in nodes or nodes[n].cpus > 1 for n in context.cluster.declared)
    return "" if many else "every node has one CPU, which a job of one core may use"


def find_devices(context: Context) -> Finding:
    """Try every device of each node in a job with one GPU, and in a job without."""
    cluster = context.cluster
    tally = Tally(unknown=list(cluster.reasons(_unusable(context, cluster.gpu_declared))))
    for group in dict.fromkeys(target.group for target in cluster.gpu_targets):
        targets = [target for target in cluster.gpu_targets if target.group == group]
        gpus = context.site.keys.node_groups[group].gpus
        prefix = gpus.device if gpus else "/dev/nvidia"
        script = _DEVICES.replace("PREFIX", prefix).replace("COUNT", str(targets[0].gpus))
        pair = {"one": ["--gres=gpu:1"], "none": []}
        answers = both(context, targets, script, pair, name=f"devices-{group}")
        told = _told(answers, tuple(pair), tally)
        _note(tally, {n: device_faults(said["one"], said["none"], prefix) for n, said in told})
    return tally.finding(cluster.gpu_declared)


def find_memory(context: Context) -> Finding:
    """Have a job on each node take more memory than it was given, and one less."""
    needs.require_nodes(context)
    cluster = context.cluster
    tally = Tally(unknown=list(cluster.blocked))
    pair: dict[str, list[str]] = {"over": [], "under": []}
    flags = f"--mem={MEMORY_MIB}M"
    answers = both(context, cluster.targets, _MEMORY, pair, flags, name="memory")
    told = dict(_told(answers, tuple(pair), tally))
    ids = [said[job].id for said in told.values() for job in pair]
    if ids and context.site.in_group("slurm_dbd"):
        records = jobs.recorded(context, ids, lambda job: job.ended)
    else:
        records = jobs.wait(context, ids, lambda job: job.ended, jobs.RECORDED_WITHIN_S)
    _note(
        tally, {n: memory_faults(said["over"], said["under"], records) for n, said in told.items()}
    )
    return tally.finding(cluster.declared)


def find_cores(context: Context) -> Finding:
    """Run two jobs of one core on each node at the same time; each tries to get them all."""
    needs.require_nodes(context)
    cluster = context.cluster
    tally = Tally(unknown=list(cluster.blocked))
    single = [target for target in cluster.targets if target.cpus < 2]
    targets = [target for target in cluster.targets if target not in single]
    script = _CORES.replace("HOLD", str(_HOLD_S))
    pair: dict[str, list[str]] = {"first": [], "second": []}
    answers = both(context, targets, script, pair, "--cpus-per-task=1", name="cores")
    told = _told(answers, tuple(pair), tally)
    _note(tally, {node: core_faults(said["first"], said["second"]) for node, said in told})
    note = f"{', '.join(target.name for target in single)}: one CPU only" if single else ""
    return tally.finding(cluster.declared, reason=note)


def _told(
    answers: dict[str, NodeAnswer], names: Iterable[str], tally: Tally
) -> Iterable[tuple[str, dict[str, JobSaid]]]:
    """Yield nodes on which the jobs began and ended, and what they said; others are unknown."""
    for node, answer in answers.items():
        said = read_jobs(answer.stdout)
        if answer.not_started:
            tally.unknown.append(answer.not_started)
        elif any(name not in said or said[name].rc is None or not said[name].id for name in names):
            tally.unknown.append(f"{node}: a job did not run to its end: {answer.complaint}")
        else:
            yield node, said


def _note(tally: Tally, faults: dict[str, Faults]) -> None:
    """Note faults; those that nodes have in common name them all."""
    for index, noted in enumerate((tally.wrong, tally.unknown)):
        by_fault: dict[str, list[str]] = {}
        for node, of in faults.items():
            for fault in of[index]:
                by_fault.setdefault(fault, []).append(node)
        noted += [f"{fold(nodes)}: {fault}" for fault, nodes in by_fault.items()]


def _unusable(context: Context, nodes: Iterable[str]) -> list[str]:
    usable = {target.name for target in context.cluster.targets}
    return [node for node in nodes if node not in usable]


def _measures(nodes: Callable[[Context], Iterable[Target]]) -> Callable[[Context], Claim]:
    """Beside jobs that compute nothing, but not beside what measures: `memory` keeps a CPU busy."""
    return lambda context: Claim(frozenset(t.name for t in nodes(context)), Mode.BUSY)


_all = _measures(lambda context: context.cluster.targets)
CHECKS = (
    Check(
        "isolation",
        "devices",
        "A job can open the GPUs that it was given and no others: the kernel denies them.",
        find_devices,
        (needs.gpus, cgroups),
        _measures(lambda context: context.cluster.gpu_targets),
    ),
    Check(
        "isolation",
        "memory",
        "A job that takes more memory than it was given is killed and recorded as OUT_OF_MEMORY.",
        find_memory,
        (needs.compute_nodes(1), cgroups),
        _all,
    ),
    Check(
        "isolation",
        "cores",
        "A job of one core runs on one core, whatever it tries; two such jobs run on two.",
        find_cores,
        (needs.compute_nodes(1), cgroups, cores_are_handed_out),
        _all,
    ),
)
