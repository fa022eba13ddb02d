"""Makes a plan: a deploy in check mode, and what its findings mean."""

from datetime import UTC, datetime
from typing import TypeVar

from hpcsite import __version__
from hpcsite.deploy.deploy import deploy
from hpcsite.deploy.options import Options
from hpcsite.deploy.outcome import Outcome
from hpcsite.deploy.plan import rules
from hpcsite.deploy.plan.collect import Findings
from hpcsite.deploy.plan.fingerprint import fingerprint
from hpcsite.deploy.plan.model import (
    AccountChange,
    DaemonChange,
    FileChange,
    Item,
    JobAtRisk,
    NodeNeed,
    OtherChange,
    PackageChange,
    Plan,
    Summary,
    Unknown,
)
from hpcsite.deploy.plan.watcher import Watcher
from hpcsite.deploy.progress import Progress
from hpcsite.deploy.rundir import RunDir
from hpcsite.errors import ExitCode
from hpcsite.site.model import Site
from hpcsite.site.names import fold
from hpcsite.slurm.conf import expand

Kind = TypeVar("Kind", bound=Item)


def make_plan(
    site: Site, progress: Progress, *, limit: str | None = None, tags: tuple[str, ...] = ()
) -> Plan:
    """Find out what a deploy with this limit and these tags would do; changes nothing.

    Raises what `deploy` raises. What happens on hosts is in the plan, never an exception.
    """
    created, watcher = datetime.now(UTC), Watcher()
    options = Options(limit=limit, tags=tags, check=True, diff=True)
    outcome = deploy(site, options, progress, watcher)
    plan = plan_of(site, outcome, watcher.findings, tags=tags, created=created)
    path = RunDir(outcome.run_dir).plan
    path.write_text(plan.model_dump_json(indent=2), encoding="utf-8")
    return plan


def plan_of(
    site: Site,
    outcome: Outcome,
    findings: Findings,
    *,
    tags: tuple[str, ...],
    created: datetime,
) -> Plan:
    """Write the plan of a check that has ended."""
    jobs, jobs_unknown = _jobs(site, findings)
    changes = [*findings.changes, *_needs(site, findings), *findings.unknown(), *jobs_unknown]
    files, packages = _of(FileChange, changes), _of(PackageChange, changes)
    daemons, nodes = _of(DaemonChange, changes), _of(NodeNeed, changes)
    accounts, other = _together(_of(AccountChange, changes)), _of(OtherChange, changes)
    unknown = _of(Unknown, changes)
    return Plan(
        site=site.name,
        inventory=site.path,
        hpcsite=__version__,
        created=created,
        duration_s=outcome.duration_s,
        limit=outcome.limit,
        tags=tags,
        status=outcome.status,
        exit_code=_exit_code(outcome),
        reason=outcome.reason,
        summary=Summary(
            files=len(files),
            packages=len({name for item in packages for name in item.packages}),
            daemons=len(daemons),
            nodes=len({host for item in nodes for host in item.hosts}),
            jobs_at_risk=len(jobs),
            accounts=sum(max(1, len(item.names)) for item in accounts),
            other=len(other),
            unknown=len(unknown),
        ),
        jobs_at_risk=jobs,
        failures=outcome.failures,
        fingerprint=fingerprint(site, changes, findings.states),
        log=outcome.log,
        files=files,
        packages=packages,
        daemons=daemons,
        nodes=nodes,
        accounts=accounts,
        other=other,
        unknown=unknown,
    )


def _of(kind: type[Kind], changes: list[tuple[str, Item]]) -> tuple[Kind, ...]:
    """Gather changes of a kind in the order in which they came; equal ones are one."""
    shared: dict[Kind, set[str]] = {}
    for host, item in changes:
        if isinstance(item, kind):
            shared.setdefault(item, set()).add(host)
    return tuple(
        item.model_copy(update={"nodes": fold(hosts), "hosts": tuple(sorted(hosts))})
        for item, hosts in shared.items()
    )


def _together(accounts: tuple[AccountChange, ...]) -> tuple[AccountChange, ...]:
    """Put users of one task on the same hosts together: a fresh machine lacks all of them."""
    shared: dict[tuple[str, str, str], AccountChange] = {}
    for item in accounts:
        key = (item.what, item.nodes, item.diff)
        found = shared.get(key)
        names = (*found.names, *item.names) if found else item.names
        shared[key] = item.model_copy(update={"names": names})
    return tuple(shared.values())


def _reboots(site: Site, findings: Findings) -> dict[str, list[str]]:
    """Hosts that need a reboot, with why: their files, and their pins."""
    because = {host: list(why) for host, why in findings.reboots.items()}
    for name, state in findings.states.items():
        if why := rules.pinned_elsewhere(site, site.hosts[name], state.facts):
            because.setdefault(name, []).extend(why)
    return because


def _needs(site: Site, findings: Findings) -> list[tuple[str, Item]]:
    compute = {host.name for host in site.in_group("slurm_compute")}
    return [
        (host, NodeNeed(needs=rules.reboot_needs(compute=host in compute), because=_unique(why)))
        for host, why in sorted(_reboots(site, findings).items())
    ]


def _jobs(site: Site, findings: Findings) -> tuple[tuple[JobAtRisk, ...], list[tuple[str, Item]]]:
    """Jobs that would end: those on nodes that reboot, all of them where Slurm loses them.

    A restart of slurmd or slurmctld ends none: a job's steps are processes of their own.
    """
    reboots = _reboots(site, findings)
    if not reboots and not findings.job_dangers:
        return (), []
    asked = {host: s for host, s in findings.states.items() if s.jobs is not None or s.jobs_problem}
    listed = [job for state in asked.values() for job in state.jobs or ()]
    unknown: list[tuple[str, Item]] = [
        (host, Unknown(what="which jobs are at risk", until=f"squeue answers: {s.jobs_problem}"))
        for host, s in asked.items()
        if s.jobs is None
    ]
    found = []
    for job in listed:
        lost = [node for node in expand(job["nodes"]) if node in reboots]
        why = [*findings.job_dangers, *([f"{fold(lost)} is rebooted"] if lost else [])]
        if why:
            found.append(JobAtRisk(**job, because=_unique(why)))
    return tuple(sorted(found, key=lambda job: job.id)), unknown


def _exit_code(outcome: Outcome) -> ExitCode:
    """Choose the exit code: a host that could not be asked leaves a hole, whichever it is."""
    unreachable = any(failure.kind == "unreachable" for failure in outcome.failures)
    if outcome.exit_code == ExitCode.FAILED and unreachable:
        return ExitCode.COULD_NOT_RUN
    return ExitCode(outcome.exit_code)


def _unique(texts: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))
