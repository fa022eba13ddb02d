"""What each host says of itself: compute nodes in a job, the others over ssh."""

from collections import Counter
from dataclasses import dataclass, field

from hpcsite.site.model import Site
from hpcsite.site.names import fold
from hpcsite.verify.context import Context
from hpcsite.verify.results import Property, Variant
from hpcsite.verify.spread import spread
from hpcsite.verify.transport import UnreachableError

# Tools are asked in this order: the one that a host's own daemon comes with is first.
SCRIPT = r"""
PATH=$PATH:/usr/sbin:/sbin
echo "hostname=$(hostname -s)"
. /etc/os-release && echo "os=$PRETTY_NAME"
echo "kernel=$(uname -r)"
for tool in slurmd slurmctld slurmdbd sinfo; do
  command -v "$tool" >/dev/null && { echo "slurm=$("$tool" -V)"; break; }
done
command -v munge >/dev/null && echo "munge=$(munge --version)"
echo "cpus=$(getconf _NPROCESSORS_ONLN)"
echo "memory_kib=$(sed -n 's/^MemTotal: *\([0-9]*\) kB$/\1/p' /proc/meminfo)"
[ -e /proc/driver/nvidia ] && echo "driver=loaded"
command -v nvidia-smi >/dev/null && echo "nvidia_smi=installed"
for device in "$1"*; do
  case ${device#"$1"} in ''|*[!0-9]*) ;; *) echo "device=$device" ;; esac
done
exit 0
"""
UNIFORM = ("os", "kernel", "slurm", "munge")
# Other hosts (a database, a file server) need neither, and are not held against Slurm's.
OF_SLURM = frozenset(("slurm", "munge"))
_SERVED_BY_SLURM = frozenset(("slurm_compute", "slurm_controller", "slurm_login", "slurm_dbd"))


@dataclass(frozen=True)
class Facts:
    """What one host said."""

    name: str
    values: dict[str, str]
    devices: tuple[str, ...] = ()

    def number(self, key: str) -> int:
        """Return a value as a number; 0 for one that the host did not say."""
        text = self.values.get(key, "")
        return int(text) if text.isdigit() else 0


@dataclass
class Survey:
    """All that was said, and why others said nothing.

    `failed` did not do what they should, `unknown` could not be asked.
    """

    facts: dict[str, Facts] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)


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
        for node, answer in spread(context, targets, command, name="survey").items():
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


def read_facts(name: str, text: str) -> Facts:
    """Read the script's `key=value` lines."""
    values: dict[str, str] = {}
    devices = []
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if key == "device":
            devices.append(value)
        elif equals and value:
            values[key] = version(value) if key in ("slurm", "munge") else value
    return Facts(name, values, tuple(devices))


def version(text: str) -> str:
    """`slurm-wlm 24.11.5` → `24.11.5`, `munge-0.5.16 (2024-03-15)` → `0.5.16`."""
    word = text.split(" (")[0].split()[-1]
    return word.removeprefix("munge-")


def properties(facts: dict[str, Facts], site: Site) -> tuple[Property, ...]:
    """Say what should be the same everywhere, and what it is where; most common value first.

    Slurm and munge are compared on the hosts of Slurm's groups, the others on all hosts.
    """
    slurm = {
        host: said for host, said in facts.items() if site.hosts[host].groups & _SERVED_BY_SLURM
    }
    held = {name: slurm if name in OF_SLURM else facts for name in UNIFORM}
    return tuple(_property(name, said) for name, said in held.items() if said)


def _property(name: str, facts: dict[str, Facts]) -> Property:
    said = {host: known.values.get(name, "unknown") for host, known in facts.items()}
    ordered = [value for value, _ in Counter(said.values()).most_common()]
    return Property(
        name=name,
        variants=tuple(
            Variant(value=value, nodes=fold(host for host in said if said[host] == value))
            for value in ordered
        ),
    )
