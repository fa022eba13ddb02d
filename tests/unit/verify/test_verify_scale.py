"""What verification asks of a site of two thousand nodes, and of its slurmctld."""

import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hpcsite.site.model import Host
from hpcsite.verify import jobs, spread, survey
from hpcsite.verify.cluster import Target
from hpcsite.verify.context import Context
from hpcsite.verify.engine import Check, execute
from hpcsite.verify.suites.node import CHECKS as NODE
from hpcsite.verify.suites.submission import CHECKS as SUBMISSION
from hpcsite.verify.suites.submission import find_every_node
from hpcsite.verify.transport import Answer
from tests.unit.verify.conftest import Clock
from tests.unit.verify.fakeslurm import FakeSlurm, Job, context_for

# Linux passes no longer argument, such as sshd's to the user's shell (MAX_ARG_STRLEN).
LONGEST = 128 * 1024


class Local(FakeSlurm):
    """Runs commands here, with tools of a test's own in front."""

    def __init__(self, tools: Path) -> None:
        super().__init__()
        self._tools = tools

    def run(self, host: Host, argv: Sequence[str], *, user: str | None, timeout_s: float) -> Answer:
        env = {"PATH": f"{self._tools}:/bin:/usr/bin"}
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
        return Answer(tuple(argv), host.name, user, done.returncode, done.stdout, done.stderr, 0, 0)


def big_site(folder: Path, slurm: FakeSlurm, *, count: int = 2000) -> Context:
    """The usual site with so many compute nodes, of long names."""
    context = context_for(folder, slurm)
    (known, *_) = context.cluster.nodes.values()
    names = [f"node{i:04d}.long-rack-name" for i in range(count)]
    host = context.site.hosts["gpu01"]
    hosts = {name: host.model_copy(update={"name": name}) for name in names}
    site = context.site.model_copy(update={"hosts": hosts})
    nodes = {name: replace(known, name=name) for name in names}
    return Context(
        replace(context.core, site=site),
        replace(context.cluster, site=site, nodes=nodes),
        context.evidence,
    )


def test_the_script_submits_one_job_a_node_and_keeps_what_is_refused(tmp_path: Path) -> None:
    sbatch = tmp_path / "sbatch"
    sbatch.write_text(
        "#!/bin/bash\n"
        "node=; for word; do case $word in --nodelist=*) node=${word#*=};; esac; done\n"
        '[ "$node" = n07 ] && { echo "sbatch: error: no"; echo more; exit 1; } >&2\n'
        'echo "1${node#n}"\n'
    )
    sbatch.chmod(0o755)
    nodes = [f"n{i:02d}" for i in range(30)]

    context = context_for(tmp_path, Local(tmp_path))
    targets = [Target(node, "gpu", "gpu", 0, 8) for node in nodes]
    ids, refused = jobs.submit_each(context, targets, "true")
    assert ids == {int(f"1{n[1:]}"): n for n in nodes if n != "n07"}
    assert refused == ["could not submit a job for n07: sbatch: error: no more"]


def test_every_node_of_two_thousand(tmp_path: Path, clock: Clock) -> None:
    slurm = FakeSlurm()
    finding = find_every_node(big_site(tmp_path, slurm))
    assert finding.status == "PASS", finding.reason
    assert len(slurm.jobs) == 2000
    assert len(slurm.asked) < 10
    assert max(len(line) for line in slurm.asked) < LONGEST
    assert clock.now < 10


def test_a_survey_of_two_thousand_is_one_command_bounded_in_time(tmp_path: Path) -> None:
    bounds = []

    class Timed(FakeSlurm):
        def run(
            self, host: Host, argv: Sequence[str], *, user: str | None, timeout_s: float
        ) -> Answer:
            bounds.append(timeout_s)
            return super().run(host, argv, user=user, timeout_s=timeout_s)

    slurm = Timed()
    found = survey.survey(big_site(tmp_path, slurm))
    assert len(found.facts) == 2000
    assert len(slurm.asked) == 1
    assert len(slurm.asked[0]) < LONGEST
    assert bounds[0] <= 600


@pytest.mark.parametrize("check", [*NODE, *SUBMISSION], ids=lambda check: check.name)
def test_a_site_that_is_down_is_one_short_sentence(tmp_path: Path, check: Check) -> None:
    context = big_site(tmp_path, FakeSlurm())
    nodes = {
        name: replace(node, states=("DOWN",), reason="power")
        for name, node in context.cluster.nodes.items()
    }
    down = Context(context.core, replace(context.cluster, nodes=nodes), context.evidence)
    reason = execute(check, down).reason
    assert reason.count("power") <= 1
    assert len(reason) < 300


def test_nodes_that_do_not_answer_take_a_bounded_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real scripts: an srun that hangs on each of more nodes than are asked at once."""
    srun = tmp_path / "srun"
    srun.write_text("#!/bin/sh\nexec sleep 20\n")
    srun.chmod(0o755)
    monkeypatch.setattr(spread, "_ANSWER_S", 0)
    monkeypatch.setattr(spread, "_EACH_S", 0.0)
    context = context_for(tmp_path, Local(tmp_path), wait_s=1.0)
    targets = [Target(f"n{i:02d}", "gpu", "gpu", 0, 8) for i in range(60)]
    answers = spread.spread(context, targets, ["true"], name="hangs")
    said = Counter(answer.not_started or answer.complaint for answer in answers.values())
    assert said.pop("no answer in time") >= 16
    assert len(answers) == 60
    assert all("was not asked" in why for why in said)
    assert said


def test_a_queue_that_takes_long_is_asked_less_often(tmp_path: Path, clock: Clock) -> None:
    class Slow(FakeSlurm):
        def run(
            self, host: Host, argv: Sequence[str], *, user: str | None, timeout_s: float
        ) -> Answer:
            clock.now += 2
            return super().run(host, argv, user=user, timeout_s=timeout_s)

    slurm = Slow(jobs={1: Job(1, ["--mem=64M"], "sleep", "RUNNING", "gpu01")})
    jobs.wait(context_for(tmp_path, slurm), [1], lambda job: job.ended, 60)
    assert len(slurm.asked) <= 7


def test_what_a_job_is_at_the_end_of_the_wait_is_looked_up_then(
    tmp_path: Path, clock: Clock
) -> None:
    """A queue of 20 s ago said that it runs."""
    job = Job(1, ["--mem=64M"], "sleep", "RUNNING", "gpu01")
    ends = clock.now + 41

    class Slow(FakeSlurm):
        def run(
            self, host: Host, argv: Sequence[str], *, user: str | None, timeout_s: float
        ) -> Answer:
            if clock.now >= ends:
                job.state = "TIMEOUT"
            clock.now += 4
            return super().run(host, argv, user=user, timeout_s=timeout_s)

    context = context_for(tmp_path, Slow(jobs={1: job}))
    assert jobs.wait(context, [1], lambda job: job.ended, 45)[1].state == "TIMEOUT"


def test_only_jobs_that_are_waited_for_are_asked_for(tmp_path: Path, clock: Clock) -> None:
    done = {n: Job(n, ["--mem=64M"], "true", "COMPLETED", "gpu01") for n in (1, 2, 3)}
    slurm = FakeSlurm(jobs=done)
    context = context_for(tmp_path, slurm)
    jobs.wait(context, [1, 2], lambda job: job.ended, 10)
    clock.now += 1
    jobs.wait(context, [3], lambda job: job.ended, 10)
    asked = [line for line in slurm.asked if line.startswith("squeue")]
    assert asked[0].endswith("--jobs=1,2")
    assert asked[-1].endswith("--jobs=3")


def test_a_job_that_slurmctld_forgot_is_looked_up_in_accounting(tmp_path: Path) -> None:
    job = Job(7, ["--mem=64M"], "true", "COMPLETED", "gpu01")
    slurm = FakeSlurm(jobs={7: job})
    slurm.answers["squeue"] = (1, "", "slurm_load_jobs error: Invalid job id specified\n")
    found = jobs.wait(context_for(tmp_path, slurm), [7], lambda job: job.ended, 10)
    assert found[7].state == "COMPLETED"
