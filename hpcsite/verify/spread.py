"""The same short job on each node, started by srun, so that its output comes back.

One srun a node: a node that does not answer then names itself, where one job over all nodes
would only fail. Sbatch's output would stay on a node without a shared file system.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hpcsite.site.names import fold
from hpcsite.verify.cluster import Target
from hpcsite.verify.context import Context
from hpcsite.verify.findings import NotMeasuredError
from hpcsite.verify.jobs import SRUN_BUSY, nodes_now, why_not_started
from hpcsite.verify.transport import KILLED, TIMED_OUT

# Sruns at the same time; each is a process on the login node and a request to slurmctld.
_AT_ONCE, _AT_MOST, _NODES_PER_SRUN = 16, 64, 32
_ANSWER_S = 20
# What a healthy node takes of the time for all; nodes that are not reached in it are not asked.
_EACH_S = 0.1
_NOT_ASKED = 75

_SCRIPT = """
folder=$(mktemp -d) || exit 9
trap 'rm -rf "$folder"' EXIT
one() {{
  timeout -k 5 {limit} {driver} srun {flags} --nodelist="$1" --partition="$2" {command} \\
    >"$folder/$1.out" 2>"$folder/$1.err" </dev/null
  echo $? >"$folder/$1.rc"
}}
SECONDS=0
while [ $# -gt 0 ]; do
  while [ "$(jobs -rp | wc -l)" -ge {at_once} ]; do wait -n; done
  if [ "$SECONDS" -gt {budget} ]; then
    : >"$folder/$1.out" >"$folder/$1.err"; echo {not_asked} >"$folder/$1.rc"
  else
    one "$1" "$2" &
  fi
  shift 2
done
wait
for rc in "$folder"/*.rc; do
  node=$(basename "$rc" .rc)
  echo "@ $node $(cat "$rc")"
  sed 's/^/> /' "$folder/$node.out"
  sed 's/^/! /' "$folder/$node.err"
done
"""


@dataclass(frozen=True)
class NodeAnswer:
    """What the job on one node did; `not_started` says why it never began."""

    node: str
    rc: int
    stdout: str
    stderr: str
    not_started: str = ""

    @property
    def complaint(self) -> str:
        """One line for a person: the first error that srun gave, else how it ended."""
        if self.rc in (TIMED_OUT, KILLED):
            return "no answer in time"
        said = [line.strip() for line in self.stderr.splitlines() if "error" in line]
        return said[0] if said else f"exit code {self.rc}"


def spread(
    context: Context,
    targets: Sequence[Target],
    command: Sequence[str],
    *flags: str,
    name: str,
    driver: Sequence[str] = (),
    runs_s: float = 0,
    lasts_s: float = 0,
    one_by_one: bool = False,
) -> dict[str, NodeAnswer]:
    """Run `command` in a job on each target; answers by node, none left out.

    A `driver` is a program on the submit host that is given the srun as its arguments. A node that
    is busy is waited for as long as the run's patience lasts. The command may run `runs_s` seconds
    beyond what a short one takes, and takes `lasts_s` on a healthy node; when many do not answer,
    the last nodes are not asked. Raises `NotMeasuredError` if the answers as a whole cannot be
    read.
    """
    patience = int(context.options.wait_s)
    common = [
        *context.job_flags(None, minutes=2 + int(runs_s // 60)),
        "--ntasks=1",
        f"--immediate={max(patience, 1)}",
        *flags,
    ]
    limit = int(patience + _ANSWER_S + runs_s)
    at_once = 1 if one_by_one else min(max(_AT_ONCE, len(targets) // _NODES_PER_SRUN), _AT_MOST)
    waves = -(-len(targets) // at_once)
    budget = int(limit + _EACH_S * len(targets) + lasts_s * (waves - 1))
    script = _SCRIPT.format(
        limit=limit,
        budget=budget,
        not_asked=_NOT_ASKED,
        driver=shlex.join(driver),
        flags=shlex.join(common),
        command=shlex.join(command),
        at_once=at_once,
    )
    pairs = [word for target in targets for word in (target.name, target.partition)]
    argv = ["bash", "-c", script, "spread", *pairs]
    answer = context.user(argv, name, timeout_s=budget + limit + 10)
    answers = read_answers(answer.stdout)
    if missing := [target.name for target in targets if target.name not in answers]:
        raise NotMeasuredError(f"no answer for {fold(missing)}: {answer.complaint}")
    return answers | _with_reasons(context, answers)


def _with_reasons(context: Context, answers: dict[str, NodeAnswer]) -> dict[str, NodeAnswer]:
    """Answers of the nodes whose job did not begin, with why; asks Slurm once for all of them."""
    busy = [n for n, answer in answers.items() if answer.rc and SRUN_BUSY in answer.stderr]
    said = {
        node: f"{node} was not asked: other nodes took all the time to answer"
        for node, answer in answers.items()
        if answer.rc == _NOT_ASKED
    }
    now = nodes_now(context, busy) if busy else {}
    for node in busy:
        said[node] = str(why_not_started(context, [node], now))
    return {node: replace(answers[node], not_started=why) for node, why in said.items()}


def read_answers(text: str) -> dict[str, NodeAnswer]:
    """Read what the script printed: `@ node rc`, then output after `> ` and errors after `! `."""
    answers: dict[str, NodeAnswer] = {}
    for block in f"\n{text}".split("\n@ ")[1:]:
        head, *lines = block.splitlines()
        node, _, rc = head.partition(" ")
        out = "\n".join(line[2:] for line in lines if line.startswith("> "))
        err = "\n".join(line[2:] for line in lines if line.startswith("! "))
        if rc.strip().isdigit():
            answers[node] = NodeAnswer(node, int(rc), out, err)
    return answers
