"""Jobs on pairs of nodes, side by side: one srun a pair, one task on each of its nodes."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hpcsite.verify.context import Context
from hpcsite.verify.findings import NotMeasuredError
from hpcsite.verify.jobs import SRUN_BUSY, nodes_now, why_not_started
from hpcsite.verify.rounds import Pair
from hpcsite.verify.spread import NodeAnswer, read_answers

_MEMORY_MIB = 256
# Starting and ending a step on a slow node, beside what its program takes.
_START_S = 20
_AT_ONCE = 64
# Linux takes no word of 128 KiB in a command (execve(2)), and ssh takes all of a command as one.
_WORDS_BYTES = 80_000

_SCRIPT = """
folder=$(mktemp -d) || exit 9
trap 'rm -rf "$folder"' EXIT
one() {{
  # The last word is several: what the script is told of this pair.
  # shellcheck disable=SC2086
  eval "set -- \\"$1\\" \\"$2\\" \\"$3\\" $4"
  name=$1,$2 nodes=$1,$2 partition=$3
  shift 3
  timeout -k 5 {limit} srun {flags} --nodelist="$nodes" --partition="$partition" {command} "$@" \\
    >"$folder/$name.out" 2>"$folder/$name.err" </dev/null
  echo $? >"$folder/$name.rc"
}}
while [ $# -gt 0 ]; do
  while [ "$(jobs -rp | wc -l)" -ge {at_once} ]; do wait -n; done
  one "$1" "$2" "$3" "$4" &
  shift 4
done
wait
for rc in "$folder"/*.rc; do
  pair=$(basename "$rc" .rc)
  echo "@ $pair $(cat "$rc")"
  sed 's/^/> /' "$folder/$pair.out"
  sed 's/^/! /' "$folder/$pair.err"
done
"""


@dataclass(frozen=True)
class PairJob:
    """A job on two nodes of one partition, and what its script is told."""

    pair: Pair
    partition: str
    words: tuple[str, ...]


def run_pairs(
    context: Context, jobs: Sequence[PairJob], script: str, *, runs_s: float, name: str
) -> dict[Pair, NodeAnswer]:
    """Run a bash script as one task on each node of each pair; answers by pair, none left out.

    The pairs must be disjoint. A pair that is busy is waited for as long as the run's patience
    lasts. Raises `NotMeasuredError` if the answers as a whole cannot be read.
    """
    patience = max(int(context.options.wait_s), 1)
    flags = [
        *context.job_flags(None, minutes=3 + int(runs_s // 60), memory_mib=_MEMORY_MIB),
        "--nodes=2",
        "--ntasks=2",
        "--ntasks-per-node=1",
        "--distribution=block",
        f"--immediate={patience}",
        "--label",
        "--mpi=none",
        "--kill-on-bad-exit=1",
    ]
    limit = int(patience + runs_s + _START_S)
    text = _SCRIPT.format(
        limit=limit,
        flags=shlex.join(flags),
        command=shlex.join(["bash", "-c", script, "pair"]),
        at_once=_AT_ONCE,
    )
    answers = {}
    for batch in batches(jobs):
        words = [word for job in batch for word in _words(job)]
        waves = 1 + (len(batch) - 1) // _AT_ONCE
        answer = context.user(["bash", "-c", text, "pairs", *words], name, waves * (limit + 10))
        by_name = read_answers(answer.stdout)
        for job in batch:
            if (said := by_name.get(",".join(job.pair))) is None:
                pair = " and ".join(job.pair)
                raise NotMeasuredError(f"no answer for {pair}: {answer.complaint}")
            answers[job.pair] = said
    return _with_reasons(context, answers)


def batches(jobs: Sequence[PairJob]) -> Iterator[list[PairJob]]:
    """Jobs in as many parts as one command can start."""
    batch: list[PairJob] = []
    size = 0
    for job in jobs:
        length = len(shlex.join(_words(job))) + 1
        if batch and size + length > _WORDS_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(job)
        size += length
    if batch:
        yield batch


def _words(job: PairJob) -> tuple[str, ...]:
    return (*job.pair, job.partition, shlex.join(job.words))


def _with_reasons(context: Context, answers: dict[Pair, NodeAnswer]) -> dict[Pair, NodeAnswer]:
    """Say of pairs whose job did not begin why; Slurm is asked once for all of them."""
    busy = [pair for pair, said in answers.items() if said.rc and SRUN_BUSY in said.stderr]
    if not busy:
        return answers
    now = nodes_now(context, {node for pair in busy for node in pair})
    return answers | {
        pair: replace(answers[pair], not_started=str(why_not_started(context, pair, now)))
        for pair in busy
    }
