"""Slurm's accounts as the site declares them, on a small cluster of its own.

The tests share the cluster and run in this order; each leaves it deployed.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import LabSite

pytestmark = pytest.mark.lab

NETWORK = "10.234.0"
HOSTS = f"""\
all:
  children:
    slurm_controller: {{hosts: {{head: {{ansible_host: {NETWORK}.10}}}}}}
    slurm_dbd: {{hosts: {{head: }}}}
    mariadb: {{hosts: {{head: }}}}
    slurm_compute:
      children:
        gpu: {{hosts: {{gpu01: {{ansible_host: {NETWORK}.21}}}}}}
"""
ACCOUNTS = """\
site_qos:
  - name: short
    priority: 50
    max_wall: "1:00:00"
    max_tres_per_job: {gres/gpu: 2, mem: 2G}
    flags: [DenyOnLimit]
    preempt: [scavenge]
  - {name: scavenge, usage_factor: 0.5}
site_accounts:
  - {name: optics, parent: physics, qos: [normal, short], default_qos: short, max_jobs: 4}
  - {name: physics, fairshare: 40, description: Department of Physics, organization: Science}
  - {name: chemistry, fairshare: 20, grp_tres: {gres/gpu: 4, mem: 3G}}
site_associations:
  - {user: alice, account: optics, partition: gpu, fairshare: parent, max_wall: "30"}
"""
BOB = "  - name: bob\n    uid: 2002\n    group: research\n"
MEMBER = "    accounts: [chemistry, optics]\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabSite]:
    if os.geteuid() != 0:
        pytest.skip("the lab needs root")
    site = LabSite(tmp_path_factory.mktemp("accounts"), name="accounts", network=NETWORK)
    (site.inventory / "hosts.yml").write_text(HOSTS, "utf-8")
    accounts(site).write_text(ACCOUNTS, "utf-8")
    keys = "group_vars/all/site.yml"
    site.edit(keys, "    uid: 2001\n", "    uid: 2001\n    accounts: [optics, chemistry]\n")
    site.edit(keys, BOB, BOB + MEMBER)
    try:
        site.ok("lab up")
        yield site
    finally:
        site.run("lab down")


def accounts(site: LabSite) -> Path:
    return site.inventory / "group_vars/all/accounts.yml"


def show(site: LabSite, what: str, columns: str) -> set[str]:
    command = f"sacctmgr --noheader --parsable2 show {what} format={columns}"
    return {*site.ssh("head", command).splitlines()}


def associations(site: LabSite) -> set[str]:
    return show(site, "associations WOPLimits", "Account,User,Partition")


def items(outcome: dict[str, Any]) -> list[str]:
    """What the deploy changed in slurmdbd."""
    return [
        item
        for change in outcome["changes"]
        if change["task"].endswith("Keep QOS, accounts and users")
        for item in change["items"]
    ]


def changed(outcome: dict[str, Any]) -> dict[str, int]:
    return {host["name"]: host["changed"] for host in outcome["hosts"] if host["changed"]}


def test_a_check_of_bare_machines_asks_no_slurmdbd(site: LabSite) -> None:
    assert "QOS scavenge: new, usage_factor 0.5" in items(site.deploy("--check"))
    assert site.ssh("head", "ls /var/lib/hpcsite 2>/dev/null | wc -l") == "0"


def test_accounts_are_made_and_a_second_deploy_changes_nothing(site: LabSite) -> None:
    site.deploy()
    assert show(site, "qos", "Name,Priority,MaxWall,MaxTRESPerJob,Flags,Preempt,UsageFactor") == {
        "normal|0|||||1.000000",
        "short|50|01:00:00|gres/gpu=2,mem=2G|DenyOnLimit|scavenge|1.000000",
        "scavenge|0|||||0.500000",
    }
    columns = "Account,User,Partition,ParentName,FairShare,QOS,DefaultQOS,MaxJobs,GrpTRES"
    rows = show(site, "associations WOPLimits", columns)
    assert {
        "physics|||root|40||||",
        "optics|||physics|1|normal,short|short|4|",
        "chemistry|||root|20||||gres/gpu=4,mem=3G",
        "optics|alice|||1||||",
        "optics|alice|gpu||parent||||",
        "chemistry|bob|||1||||",
    } <= rows
    assert show(site, "user alice", "User,DefaultAccount") == {"alice|optics"}
    assert changed(site.deploy()) == {}


def test_exactly_what_was_edited_is_changed(site: LabSite) -> None:
    file = "group_vars/all/accounts.yml"
    site.edit(file, "fairshare: 40", "fairshare: 60")
    site.edit(file, "gres/gpu: 2, mem: 2G", "gres/gpu: 3")
    site.edit(file, "grp_tres: {gres/gpu: 4, mem: 3G}", "max_jobs: 2")
    expected = [
        "QOS short: max_tres_per_job gres/gpu=2,mem=2G -> gres/gpu=3",
        "account physics: fairshare 40 -> 60",
        "account chemistry: max_jobs none -> 2, grp_tres gres/gpu=4,mem=3G -> none",
    ]
    assert items(site.deploy("--check")) == expected
    assert "physics|60" not in show(site, "associations", "Account,FairShare")
    outcome = site.deploy()
    assert items(outcome) == expected
    assert changed(outcome) == {"head": 1}
    assert "physics|60" in show(site, "associations", "Account,FairShare")
    assert changed(site.deploy()) == {}


def test_limits_hold(site: LabSite) -> None:
    assert site.as_user("srun --gres=gpu:3 hostname", node="head") == "gpu01"
    beyond = site.ssh_raw("head", "runuser -u alice -- srun -D /tmp --gres=gpu:4 hostname")
    assert beyond.returncode != 0
    assert "violates accounting/QOS policy" in beyond.stderr
    foreign = site.ssh_raw("head", "runuser -u bob -- srun -D /tmp -A physics hostname")
    assert foreign.returncode != 0
    assert "Invalid account" in foreign.stderr


def test_what_is_undeclared_goes_only_by_prune_and_never_under_jobs(site: LabSite) -> None:
    site.ssh("head", "sacctmgr --immediate add account guests")
    site.ssh("head", "sacctmgr --immediate add user bob account=guests")
    site.edit("group_vars/all/site.yml", MEMBER, "    accounts: [chemistry]\n")
    outcome = site.deploy()
    assert changed(outcome) == {}
    assert "optics|bob|" in associations(site)
    site.edit("group_vars/all/accounts.yml", "site_qos:", "slurm_accounts_prune: true\nsite_qos:")
    job = site.ssh(
        "head",
        "runuser -u bob -- sbatch --parsable -D /tmp -o /dev/null -A optics --wrap 'sleep 600'",
    )
    assert changed(site.deploy()) == {}
    assert "optics|bob|" in associations(site)
    site.ssh("head", f"scancel {job}; while squeue -hj {job} | grep -q .; do sleep 1; done")
    outcome = site.deploy()
    assert items(outcome) == ["association bob in optics: removed"]
    assert "optics|bob|" not in associations(site)
    assert {"chemistry|bob|", "guests|bob|", "guests||"} <= associations(site)
    assert changed(site.deploy()) == {}


def test_who_verifies_keeps_an_account(site: LabSite) -> None:
    site.edit("group_vars/all/accounts.yml", ACCOUNTS[ACCOUNTS.index("site_associations") :], "")
    site.edit("group_vars/all/site.yml", "    accounts: [optics, chemistry]\n", "")
    assert "association alice in hpcsite: new" in items(site.deploy())
    assert site.as_user("srun hostname", node="head") == "gpu01"
    assert show(site, "user alice", "User,DefaultAccount") == {"alice|hpcsite"}


def test_an_absent_user_leaves_slurm_too(site: LabSite) -> None:
    site.edit("group_vars/all/site.yml", "[chemistry]\n", "[chemistry]\n    state: absent\n")
    assert "user bob: removed, was in chemistry, guests" in items(site.deploy())
    assert show(site, "user bob", "User") == set()
    assert changed(site.deploy()) == {}
