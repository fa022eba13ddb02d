"""A site of four hosts and a Slurm that answers from memory, broken as a test wants it."""

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hpcsite.site.model import Gpus, Hardware, Host, NodeGroup, Partition, Site, SiteKeys
from hpcsite.slurm.node_records import read_config, read_nodes, read_up_partitions
from hpcsite.verify.cluster import Cluster
from hpcsite.verify.context import Context, Core, Options
from hpcsite.verify.evidence import Evidence
from hpcsite.verify.results import Result
from hpcsite.verify.transport import Answer

Runner = Callable[..., Result]
FIXTURES = Path(__file__).parent / "fixtures"
GROUPS = {
    "head": {"slurm_controller", "slurm_dbd"},
    "login": {"slurm_login"},
    "gpu01": {"slurm_compute", "gpu"},
    "gpu02": {"slurm_compute", "gpu"},
}
NOW = 1_796_000_000
SURVEY = """\
hostname={name}
os=Debian GNU/Linux 13 (trixie)
kernel=6.12.57
slurm=slurm-wlm 24.11.5
munge=munge-0.5.16 (2024-03-15)
cpus=2
memory_kib=24684084
"""


def fixture(name: str) -> str:
    return (FIXTURES / name).read_text()


def make_site(
    path: Path = Path("/site"), *, hosts: Sequence[str] = tuple(GROUPS), **more: set[str]
) -> Site:
    """A site of some of the usual hosts, and of more: their groups by name."""
    groups = {name: GROUPS[name] for name in hosts} | more
    group = NodeGroup(
        virtual=True,
        hardware=Hardware(sockets=1, cores_per_socket=8, memory_mib=4096),
        gpus=Gpus(count=8),
    )
    keys = SiteKeys(
        name="lab",
        verify_user="alice",
        node_groups={"gpu": group},
        partitions=(Partition(name="gpu", node_groups=("gpu",), default=True),),
    )
    return Site(
        path=path,
        keys=keys,
        hosts={
            name: Host(name=name, groups=frozenset(of), address=name, vars={})
            for name, of in groups.items()
        },
    )


@dataclass
class Job:
    id: int
    flags: list[str]
    command: str
    state: str
    node: str
    exit_code: int = 0
    reason: str = "None"

    @property
    def gpus(self) -> int:
        return sum(int(flag.rpartition(":")[2]) for flag in self.flags if "gres=gpu:" in flag)

    @property
    def memory(self) -> int:
        return next(int(f[6:-1]) for f in self.flags if f.startswith("--mem="))


@dataclass
class FakeSlurm:
    """Answers commands as a healthy cluster of two 8-GPU nodes does, unless told otherwise.

    `answers` comes first: by a piece of the command line, what it prints or a whole answer.
    """

    gpus: int = 8
    nodes: str = "nodes-idle.json"
    devices: Callable[[int], str] = str
    start: Callable[["FakeSlurm", Job], str] | None = None
    end_at_limit: bool = True
    answers: dict[str, str | tuple[int, str, str]] = field(default_factory=dict)
    surveys: dict[str, str] = field(default_factory=dict)
    records: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = list
    jobs: dict[int, Job] = field(default_factory=dict)
    forgotten: set[int] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    # Answers jobs on pairs of nodes, from the command's words.
    pairs: Callable[[list[str]], str] | None = None
    # Further nodes, which are as the first one of `nodes`.
    more: tuple[str, ...] = ()

    def run(self, host: Host, argv: Sequence[str], *, user: str | None, timeout_s: float) -> Answer:
        line = shlex.join(argv)
        self.asked.append(line)
        rc, out, err = self._answer(host, list(argv), line)
        return Answer(tuple(argv), host.name, user, rc, out, err, 1000.0, 0.01)

    @property
    def shown(self) -> str:
        """What scontrol shows of all nodes."""
        known = json.loads(fixture(self.nodes)) if self.more else {}
        for name in self.more:
            known["nodes"].append(
                known["nodes"][0] | {"name": name, "hostname": name, "address": name}
            )
        return json.dumps(known) if self.more else fixture(self.nodes)

    def interrupt(self) -> None: ...

    def resume(self) -> None: ...

    def _answer(self, host: Host, argv: list[str], line: str) -> tuple[int, str, str]:
        for piece, answer in self.answers.items():
            if piece in line:
                return (0, answer, "") if isinstance(answer, str) else answer
        if self.pairs is not None and "pairs" in argv:
            return 0, self.pairs(argv), ""
        return 0, self._healthy(host, argv, line), ""

    def _healthy(self, host: Host, argv: list[str], line: str) -> str:
        if " show " in line and "CUDA_VISIBLE_DEVICES" in line:
            return self._devices(argv)
        if "contact" in argv:
            return "".join(f"@ {node} yes\n" for node in argv[4::3])
        if "survey" in line:
            return self._survey(host, argv)
        if "coproc" in line:
            return "".join(f"@ {n} 0\n> 10.0 10.001 10.002\n" for n in ("gpu01", "gpu02"))
        for tool in ("sbatch", "squeue", "sacct", "scancel"):
            if tool in line:
                return str(getattr(self, f"_{tool}")(argv))
        if "scontrol update" in line and self.end_at_limit:
            self._finish(int(argv[2].partition("=")[2]), "TIMEOUT")
        if "scontrol show nodes" in line:
            return self.shown
        if line == "date +%s.%N":
            return "1000.005\n"
        return ""

    def _survey(self, host: Host, argv: list[str]) -> str:
        if argv[0] == "sh":
            return self.surveys.get(host.name, SURVEY.format(name=host.name))
        devices = "".join(f"device=/dev/nvidia{i}\n" for i in range(self.gpus))
        blocks = ""
        for name in argv[4::2]:
            text = self.surveys.get(name, SURVEY.format(name=name) + devices)
            blocks += f"@ {name} 0\n" + "".join(f"> {line}\n" for line in text.splitlines())
        return blocks

    def _devices(self, argv: list[str]) -> str:
        return "".join(
            f"job={job} node={self.jobs[int(job)].node} devices={self.devices(position)}\n"
            for position, job in enumerate(argv[4:])
        )

    def _sbatch(self, argv: list[str]) -> str:
        if "submit-each" in argv:
            return "".join(
                f"@ {node} 0 {self._submit(node, ['--mem=64M'], 'true')}\n" for node in argv[4::2]
            )
        count = int(argv[4]) if argv[0] == "bash" else 1
        made = ""
        for _ in range(count):
            node = next((f.partition("=")[2] for f in argv if f.startswith("--nodelist=")), "gpu01")
            made += f"{self._submit(node, argv, argv[-1].partition('=')[2])}\n"
        return made

    def _submit(self, node: str, flags: list[str], command: str) -> int:
        number = len(self.jobs) + 1
        job = Job(number, flags, command, "PENDING", node, reason="Resources")
        self.jobs[number] = job
        self._try_start(job)
        return number

    def _try_start(self, job: Job) -> None:
        used = sum(
            j.gpus for j in self.jobs.values() if j.state == "RUNNING" and j.node == job.node
        )
        state = "RUNNING" if used + job.gpus <= self.gpus else "PENDING"
        job.state = self.start(self, job) if self.start else state
        if job.state == "RUNNING" and "sleep" not in job.command:
            job.exit_code = int(job.command.removeprefix("exit ")) if "exit" in job.command else 0
            job.state = "FAILED" if job.exit_code else "COMPLETED"

    def _finish(self, number: int, state: str) -> None:
        self.jobs[number].state = state
        for job in self.jobs.values():
            if job.state == "PENDING":
                self._try_start(job)

    def _scancel(self, argv: list[str]) -> str:
        for word in argv:
            if word.isdigit() and self.jobs[int(word)].state in ("PENDING", "RUNNING"):
                self._finish(int(word), "CANCELLED")
        return ""

    def _squeue(self, argv: list[str]) -> str:
        clock = f"{NOW}\n" if argv[-1].startswith("date") else ""
        return clock + json.dumps(
            {
                "jobs": [
                    {
                        "job_id": job.id,
                        "name": "hpcsite-run",
                        "job_state": [job.state],
                        "state_reason": job.reason if job.state == "PENDING" else "None",
                        "nodes": "" if job.state == "PENDING" else job.node,
                        "exit_code": _code(job.exit_code),
                        "tres_alloc_str": f"cpu=1,gres/gpu={job.gpus}",
                    }
                    for job in self.jobs.values()
                    if job.id not in self.forgotten
                ]
            }
        )

    def _sacct(self, argv: list[str]) -> str:
        wanted = [int(i) for i in argv[-1].partition("=")[2].split(",")]
        found = [
            {
                "job_id": job.id,
                "state": {"current": [job.state]},
                "nodes": job.node,
                "exit_code": _code(job.exit_code),
                "tres": {
                    "allocated": [
                        {"type": "cpu", "name": "", "count": 1},
                        {"type": "mem", "name": "", "count": job.memory},
                        {"type": "node", "name": "", "count": 1},
                        {"type": "gres", "name": "gpu", "count": job.gpus},
                    ]
                },
            }
            for job in self.jobs.values()
            if job.id in wanted
        ]
        return json.dumps({"jobs": self.records(found)})


def _code(number: int) -> dict[str, Any]:
    return {"return_code": {"set": True, "number": number}, "signal": {"id": {"set": False}}}


def context_for(
    folder: Path, slurm: FakeSlurm, site: Site | None = None, **options: str | float
) -> Context:
    site = site or make_site()
    (folder / "raw").mkdir(exist_ok=True)
    host = site.hosts.get("login") or next(iter(site.hosts.values()))
    chosen = Options(**options)  # type: ignore[arg-type]
    core = Core(site, slurm, host, "alice", chosen, "run", folder)
    cluster = Cluster(
        site,
        read_nodes(slurm.shown),
        read_up_partitions(fixture("partitions.json")),
        read_config(slurm.answers.get("config", "") or fixture("config.txt")),  # type: ignore[arg-type]
        chosen.partition,
    )
    return Context(core, cluster, Evidence(folder, "check"))
