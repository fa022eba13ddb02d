"""Findings → a plan, its text, its fingerprint."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hpcsite.deploy.failures import Failure
from hpcsite.deploy.outcome import Outcome
from hpcsite.deploy.plan.collect import Findings, HostState
from hpcsite.deploy.plan.fingerprint import moved
from hpcsite.deploy.plan.make import plan_of
from hpcsite.deploy.plan.model import (
    AccountChange,
    DaemonChange,
    FileChange,
    Item,
    NodeNeed,
    OtherChange,
    PackageChange,
    Plan,
)
from hpcsite.deploy.plan.store import check_writable, read_plan, require_unmoved, write_plan
from hpcsite.deploy.plan.text import plan_text
from hpcsite.errors import FailedError, UsageError
from hpcsite.site.model import Gpus, NodeGroup, Site, Software

HOSTS = FileChange(path="/etc/hosts", change="content", diff="@@ -1 +1 @@\n-a\n+b")
JOBS = [
    {"id": "7", "user": "alice", "nodes": "gpu[01-02]"},
    {"id": "8_1", "user": "bob", "nodes": "gpu10"},
    {"id": "9", "user": "bob", "nodes": "cpu1"},
]


def outcome(site: Site, **changes: Any) -> Outcome:  # noqa: ANN401 - any field
    values: dict[str, Any] = {
        "site": site.name,
        "inventory": site.path,
        "status": "ok",
        "exit_code": 0,
        "reason": "",
        "started": datetime(2026, 1, 1, tzinfo=UTC),
        "duration_s": 1.0,
        "check": True,
        "limit": None,
        "layers": (),
        "hosts": (),
        "failures": (),
        "untouched": (),
        "ended_early": "",
        "run_dir": Path("/run"),
        "log": Path("/run/ansible.log"),
    }
    return Outcome(**values | changes)


def plan(site: Site, *changes: tuple[str, Item], **rest: Any) -> Plan:  # noqa: ANN401 - any field
    states = rest.pop("states", {host: HostState(kernel="6.1.0") for host in site.hosts})
    findings = Findings(changes=list(changes), states=states, **rest.pop("findings", {}))
    return plan_of(
        site,
        outcome(site, **rest),
        findings,
        tags=(),
        created=datetime(2026, 1, 1, tzinfo=UTC),
    )


def text(one: Plan) -> str:
    return plan_text(one, folder=Path("/")).plain


def with_software(site: Site, **pins: str) -> Site:
    groups = {"gpu": NodeGroup(gpus=Gpus(count=8))}
    keys = site.keys.model_copy(update={"software": Software(**pins), "node_groups": groups})
    return site.model_copy(update={"keys": keys})


def failure(kind: str, host: str = "gpu02") -> Failure:
    return Failure.model_validate(
        {
            "nodes": host,
            "hosts": (host,),
            "kind": kind,
            "layer": "preflight",
            "task": "T",
            "file": "",
            "line": 0,
            "message": "no answer",
        }
    )


def test_nothing_to_do_is_said_in_one_line(site: Site) -> None:
    one = plan(site)
    assert one.summary.empty
    assert text(one) == "plan of site trial: no changes\n"
    assert one.exit_code == 0


def test_equal_changes_are_one_over_a_set_of_nodes(site: Site) -> None:
    other = HOSTS.model_copy(update={"diff": "@@ -1 +1 @@\n-c\n+b"})
    one = plan(site, ("gpu02", HOSTS), ("gpu01", HOSTS), ("head", other), ("gpu10", HOSTS))
    assert [(f.nodes, f.hosts) for f in one.files] == [
        ("gpu[01-02,10]", ("gpu01", "gpu02", "gpu10")),
        ("head", ("head",)),
    ]
    assert one.summary.files == 2


def test_the_text_has_a_line_a_kind_and_then_each_change(site: Site) -> None:
    one = plan(
        site,
        ("gpu01", HOSTS),
        ("gpu02", HOSTS),
        ("gpu01", PackageChange(action="install", packages=("munge", "slurmd"))),
        ("head", DaemonChange(daemon="slurmctld", action="reconfigure", because=("/etc/a",))),
        ("gpu10", NodeNeed(needs=("drain",), because=("2 GPUs of 8",), by_deploy=True)),
        ("head", AccountChange(system="slurm", what="Keep accounts", diff="+bio")),
        ("head", OtherChange(layer="storage", task="Mount", details=("mount home",))),
        findings={"waiting": {"gpu01": ["munge", "slurmd"]}},
    )
    assert (
        text(one)
        == """\
plan of site trial: a deploy would change this
  files       1 change (gpu[01-02])
  packages    2 to install, upgrade or remove (gpu01)
  daemons     1 start, restart or read anew (head)
  nodes       1 need a drain or a reboot (gpu10)
  jobs        0
  accounts    1 change (head)
  other       1 change (head)
  unknown     1 until another step is done (gpu01)

files
  gpu[01-02]  /etc/hosts
      @@ -1 +1 @@
      -a
      +b

packages
  gpu01  install: munge, slurmd

daemons
  head  slurmctld reads its configuration again, without a restart: /etc/a

nodes
  gpu10  drain (deploy does it): 2 GPUs of 8

accounts
  head  Keep accounts (in Slurm's accounting)
      +bio

other
  head  storage: Mount: mount home

unknown
  gpu01  what munge and slurmd set up and run: until the packages are installed
"""
    )


def test_users_of_one_task_are_named_together(site: Site) -> None:
    users = [
        AccountChange(system="linux", what="Keep users", names=(f"user{n:02}",)) for n in range(25)
    ]
    some = [("gpu01", user) for user in users] + [("gpu02", user) for user in users]
    one = plan(site, *some, ("head", users[0]))
    assert [(item.nodes, len(item.names)) for item in one.accounts] == [
        ("gpu[01-02],head", 1),
        ("gpu[01-02]", 24),
    ]
    assert one.summary.accounts == 25
    assert "user20 and 4 more (on the machines)" in text(one)


def test_a_driver_pin_that_differs_drains_and_reboots_the_gpu_nodes(site: Site) -> None:
    pinned = with_software(site, nvidia_driver="550.90.07")
    states = {host: HostState(kernel="6.1.0", jobs=None) for host in site.hosts}
    states["head"] = HostState(jobs=JOBS)
    states["gpu10"] = HostState(nvidia_driver="550.90.07")
    states["gpu02"] = HostState(nvidia_driver="535.54")
    one = plan(pinned, states=states)
    assert [(n.nodes, n.needs, n.because) for n in one.nodes] == [
        ("gpu01", ("drain", "reboot"), ("NVIDIA driver none → 550.90.07",)),
        ("gpu02", ("drain", "reboot"), ("NVIDIA driver 535.54 → 550.90.07",)),
    ]
    assert [(job.id, job.user, job.because) for job in one.jobs_at_risk] == [
        ("7", "alice", ("gpu[01-02] is rebooted",))
    ]
    assert "deploy does not do it" in text(one)
    assert "job 7 of alice on gpu[01-02]" in text(one)


def test_a_kernel_pin_reboots_all_hosts_and_drains_only_compute_nodes(site: Site) -> None:
    states = {host: HostState(kernel="6.1.0") for host in site.hosts}
    states["gpu01"] = HostState(kernel="6.8.0")
    one = plan(with_software(site, kernel="6.8.0"), states=states)
    assert [(n.nodes, n.needs) for n in one.nodes] == [
        ("gpu[02,10]", ("drain", "reboot")),
        ("head,login", ("reboot",)),
    ]


def test_no_job_is_at_risk_when_daemons_restart(site: Site) -> None:
    restart = DaemonChange(daemon="slurmd", action="restart", because=("/etc/default/slurmd",))
    one = plan(site, ("gpu01", restart), states={"head": HostState(jobs=JOBS)})
    assert one.jobs_at_risk == ()


def test_all_jobs_are_at_risk_when_slurm_loses_them(site: Site) -> None:
    one = plan(site, states={"head": HostState(jobs=JOBS)}, findings={"job_dangers": ["it moves"]})
    assert [job.id for job in one.jobs_at_risk] == ["7", "8_1", "9"]


def test_jobs_that_nobody_can_name_are_unknown_where_it_matters(site: Site) -> None:
    states = {"head": HostState(jobs=None, jobs_problem="slurmctld does not answer")}
    assert plan(site, states=states).unknown == ()
    one = plan(site, states=states, findings={"reboots": {"gpu01": ["a new kernel"]}})
    assert [item.what for item in one.unknown] == ["which jobs are at risk"]


@pytest.mark.parametrize(("kind", "code"), [("failed", 1), ("unreachable", 4)])
def test_exit_codes_of_a_plan_with_a_hole(site: Site, kind: str, code: int) -> None:
    one = plan(site, status="failed", exit_code=1, failures=(failure(kind),))
    assert one.exit_code == code
    assert "NOT WHOLE: nothing is known of gpu02" in text(one)
    assert "no answer" in text(one)


def test_a_plan_is_stored_for_its_owner_and_read_again(site: Site, tmp_path: Path) -> None:
    one = plan(site, ("gpu01", HOSTS))
    write_plan(one, tmp_path / "p")
    assert (tmp_path / "p").stat().st_mode & 0o777 == 0o600
    assert read_plan(tmp_path / "p", site) == one
    assert [file.name for file in tmp_path.iterdir()] == ["p"]


def test_what_is_no_plan_of_this_site_is_refused(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "p"
    with pytest.raises(UsageError, match="No such file"):
        read_plan(file, site)
    file.write_text("{}", encoding="utf-8")
    with pytest.raises(UsageError, match="no plan of this version"):
        read_plan(file, site)
    write_plan(plan(site).model_copy(update={"site": "other"}), file)
    with pytest.raises(UsageError, match="the site other"):
        read_plan(file, site)
    with pytest.raises(UsageError, match="no file can be written"):
        check_writable(tmp_path / "none" / "p")


def test_a_plan_holds_while_nothing_moves(site: Site) -> None:
    first, second = plan(site, ("gpu01", HOSTS)), plan(site, ("gpu01", HOSTS), duration_s=9.0)
    assert moved(first, second) == []
    require_unmoved(first, second, Path("p"))


def test_it_is_said_what_moved(site: Site) -> None:
    first = plan(site, ("gpu01", HOSTS))
    motd = FileChange(path="/etc/motd", change="content", diff="-x\n+y")
    assert moved(first, plan(site, ("gpu01", HOSTS), ("head", motd))) == [
        "head: not as planned: /etc/motd"
    ]
    with_pin = with_software(site, kernel="6.1.0")
    assert moved(first, plan(with_pin, ("gpu01", HOSTS))) == [
        "the description has changed: site_node_groups, site_software"
    ]
    gpu01 = site.hosts["gpu01"].model_copy(update={"vars": {"rdma_mode": "none"}})
    changed = site.model_copy(update={"hosts": {**site.hosts, "gpu01": gpu01}})
    assert moved(first, plan(changed, ("gpu01", HOSTS))) == [
        "the description has changed: variables or groups of gpu01"
    ]
    other = HOSTS.model_copy(update={"diff": "-z\n+b"})
    both = plan(site, ("gpu01", HOSTS), ("gpu01", motd), ("gpu02", motd))
    assert moved(first, both) == ["gpu[01-02]: not as planned: /etc/motd"]
    assert moved(first, plan(site, ("gpu01", other))) == ["gpu01: not as planned: /etc/hosts"]


def test_a_new_job_at_risk_is_a_move_and_a_job_that_ended_is_none(site: Site) -> None:
    dangers = {"job_dangers": ["it moves"]}
    two = plan(site, states={"head": HostState(jobs=JOBS[:2])}, findings=dangers)
    three = plan(site, states={"head": HostState(jobs=JOBS)}, findings=dangers)
    assert moved(two, three) == ["jobs are at risk that the plan does not name: 9 of bob"]
    assert moved(three, two) == []


def test_a_plan_that_does_not_hold_is_refused_with_what_to_do(site: Site) -> None:
    hole = plan(site, status="failed", exit_code=1, failures=(failure("unreachable"),))
    with pytest.raises(FailedError, match="nothing is known of gpu02") as refused:
        require_unmoved(plan(site), hole, Path("a plan"))
    assert "hpcsite plan" in refused.value.hint
    assert "--out 'a plan'" in refused.value.hint


def test_the_description_is_not_in_the_fingerprint_in_clear(site: Site) -> None:
    host = site.hosts["head"].model_copy(update={"vars": {"mail_password": "hunter2"}})
    changed = site.model_copy(update={"hosts": {**site.hosts, "head": host}})
    assert "hunter2" not in plan(changed).model_dump_json()
    assert moved(plan(site), plan(changed))
