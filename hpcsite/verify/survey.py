"""What each host says of itself: compute nodes in a job, the others over ssh."""

from dataclasses import dataclass, field
from importlib.resources import files

from hpcsite.verify.context import Context
from hpcsite.verify.parsers.facts import Facts, read_facts
from hpcsite.verify.spread import spread
from hpcsite.verify.transport import UnreachableError

SCRIPT = (files("hpcsite.verify") / "programs" / "survey.sh").read_text(encoding="utf-8")
# Of tools that answer late each has 5 s (see the script); on a healthy host all take less than one.
_RUNS_S = 20.0


@dataclass
class Survey:
    """All that was said, and why others said nothing.

    `failed` did not do what they should, `unknown` could not be asked.
    """

    facts: dict[str, Facts] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)

    def silent(self, host: str) -> str:
        """Why nothing is known of a host."""
        why = self.failed.get(host) or self.unknown.get(host)
        return why or f"{host} is not known to Slurm"


def survey(context: Context) -> Survey:
    """Ask every host once in a run; checks share the answers."""
    return context.shared("survey", _survey)


def _survey(context: Context) -> Survey:
    found = Survey()
    _ask_nodes(context, found)
    _ask_others(context, found)
    return found


def _ask_nodes(context: Context, found: Survey) -> None:
    cluster = context.cluster
    found.unknown |= cluster.reason_of(cluster.declared)
    by_prefix: dict[str, list[str]] = {}
    for target in cluster.targets:
        by_prefix.setdefault(device_prefix(context, target.name), []).append(target.name)
    for prefix, names in by_prefix.items():
        targets = [target for target in cluster.targets if target.name in names]
        command = ["sh", "-c", SCRIPT, "survey", prefix]
        answers = spread(context, targets, command, name="survey", runs_s=_RUNS_S)
        for node, answer in answers.items():
            if answer.rc == 0:
                found.facts[node] = read_facts(node, answer.stdout)
            elif answer.not_started:
                found.unknown[node] = answer.not_started
            else:
                found.failed[node] = f"{node} does not run a job: {answer.complaint}"


def _ask_others(context: Context, found: Survey) -> None:
    for host in context.site.hosts.values():
        if "slurm_compute" in host.groups:
            continue
        argv = ["sh", "-c", SCRIPT, "survey", "/dev/nvidia"]
        try:
            answer = context.admin(host, argv, f"survey-{host.name}")
        except UnreachableError as error:
            found.failed[host.name] = f"cannot reach {error}"
            continue
        if answer.ok:
            found.facts[host.name] = read_facts(host.name, answer.stdout)
        else:
            found.unknown[host.name] = f"{host.name}: {answer.complaint}"


def device_prefix(context: Context, node: str) -> str:
    """Path of a node's GPU device files, less their number."""
    gpus = context.cluster.group_of(node)[1].gpus
    return gpus.device if gpus else "/dev/nvidia"
