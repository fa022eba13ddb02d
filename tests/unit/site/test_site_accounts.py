"""Rules of accounts and associations: each bad case where it stands, and good ones."""

import time

import pytest

from hpcsite.errors import InvalidSiteError, Problem
from tests.unit.site.mini import SiteFolder

SITE, ACCOUNTS = "group_vars/all/site.yml", "group_vars/all/accounts.yml"
SLURM = "group_vars/all/slurm.yml"
WEIGHTS = """\
site_slurm_parameters:
  PriorityType: priority/multifactor
  PriorityWeightFairshare: 1000
  PriorityWeightQOS: 1000
"""
Edit = tuple[str, str, str]
TREE = """\
site_qos:
  - name: high
    priority: 10
site_accounts:
  - name: science
    fairshare: 60
  - name: physics
    parent: science
    qos: [normal, high]
    default_qos: normal
    grp_tres: {gres/gpu: 64, license/matlab: 2}
  - name: chemistry
    parent: science
    fairshare: parent
    max_wall: 2-00:00:00
site_associations:
  - user: alice
    account: physics
    fairshare: 5
  - user: alice
    account: physics
    partition: batch
    max_jobs: 3
"""


@pytest.fixture
def charged(folder: SiteFolder) -> SiteFolder:
    """Give the valid site with a tree of accounts."""
    folder.write(ACCOUNTS, TREE)
    folder.edit(SLURM, "", WEIGHTS)
    folder.edit(SITE, "    uid: 2001\n", "    uid: 2001\n    accounts: [physics, chemistry]\n")
    folder.edit(SITE, "    uid: 2002\n", "    uid: 2002\n    accounts: [chemistry]\n")
    return folder


def found(folder: SiteFolder) -> list[Problem]:
    """Mistakes and warnings."""
    try:
        return list(folder.load().warnings)
    except InvalidSiteError as error:
        return [*error.problems, *error.warnings]


def put(old: str, new: str) -> Edit:
    return (ACCOUNTS, old, new)


BAD = (
    (
        "account twice",
        put("name: chemistry", "name: physics"),
        "name: physics",
        "the account physics is described twice",
        "HPC1510",
    ),
    ("upper case", put("name: chemistry", "name: Chemistry"), "Chemistry", "lower-case", "HPC1040"),
    ("root", put("name: chemistry", "name: root"), "name: root", "root is Slurm's own", "HPC1511"),
    (
        "unknown parent",
        put("parent: science\n    fair", "parent: sience\n    fair"),
        "parent: sience",
        "the account chemistry is below an unknown account sience",
        "HPC1512",
    ),
    (
        "ring",
        put("    fairshare: 60\n", "    fairshare: 60\n    parent: physics\n"),
        "parent: physics",
        "science is below physics is below science",
        "HPC1513",
    ),
    (
        "own parent",
        put("    fairshare: 60\n", "    fairshare: 60\n    parent: science\n"),
        "parent: science",
        "science is below science",
        "HPC1513",
    ),
    (
        "unknown QOS",
        put("[normal, high]", "[normal, hihg]"),
        "hihg",
        "unknown QOS hihg",
        "HPC1514",
    ),
    (
        "unknown default QOS",
        put("    fairshare: 60\n", "    fairshare: 60\n    default_qos: low\n"),
        "default_qos: low",
        "unknown QOS low",
        "HPC1514",
    ),
    (
        "default QOS that is not allowed",
        put("qos: [normal, high]", "qos: [high]"),
        "default_qos: normal",
        "the default QOS normal is not among high",
        "HPC1515",
    ),
    (
        "list without the inherited default QOS",
        put(
            "chemistry\n    parent: science\n", "chemistry\n    parent: physics\n    qos: [high]\n"
        ),
        "qos: [high]",
        "high leaves out normal, the default QOS that comes down from the account physics",
        "HPC1525",
    ),
    (
        "association without the inherited default QOS",
        put("    fairshare: 5\n", "    fairshare: 5\n    qos: [high]\n"),
        "qos: [high]",
        "high leaves out normal, the default QOS that comes down from the account physics",
        "HPC1525",
    ),
    (
        "shares without weight",
        (SLURM, "  PriorityWeightFairshare: 1000\n", ""),
        "fairshare: 60",
        "fairshare has no effect: PriorityWeightFairshare is 0",
        "HPC1526",
    ),
    (
        "priorities without weight",
        (SLURM, "  PriorityWeightQOS: 1000\n", "  PriorityWeightQOS: 0\n"),
        "priority: 10",
        "priority has no effect: PriorityWeightQOS is 0",
        "HPC1526",
    ),
    (
        "weights that priority/basic does not know",
        (SLURM, "priority/multifactor", "priority/basic"),
        "fairshare: 60",
        "fairshare has no effect",
        "HPC1526",
    ),
    (
        "unknown account of a user",
        (SITE, "accounts: [chemistry]", "accounts: [chemisty]"),
        "accounts: [chemisty]",
        "the user bob has an unknown account chemisty",
        "HPC1518",
    ),
    (
        "default account of others",
        (SITE, "accounts: [chemistry]", "accounts: [chemistry]\n    default_account: physics"),
        "default_account: physics",
        "the default account physics of bob is none of the user's",
        "HPC1519",
    ),
    (
        "user without account",
        (SITE, "    accounts: [chemistry]\n", ""),
        "name: bob",
        "bob has no account, and can submit no job",
        "HPC1520",
    ),
    (
        "association of an unknown user",
        put(
            "user: alice\n    account: physics\n    part",
            "user: alcie\n    account: physics\n    part",
        ),
        "user: alcie",
        "an association is of an unknown user alcie",
        "HPC1521",
    ),
    (
        "association in an unknown account",
        put("account: physics\n    part", "account: phsics\n    part"),
        "account: phsics",
        "an association is of an unknown account phsics",
        "HPC1521",
    ),
    (
        "association in an unknown partition",
        put("partition: batch", "partition: btach"),
        "partition: btach",
        "an association is of an unknown partition btach",
        "HPC1521",
    ),
    (
        "association of one who leaves",
        (SITE, "    uid: 2002\n", "    uid: 2002\n    state: absent\n"),
        "user: bob",
        "an association is of the user bob, who is to be absent",
        "HPC1521",
    ),
    (
        "association twice",
        put("    partition: batch\n", ""),
        "user: alice",
        "the association of alice in physics is described twice",
        "HPC1522",
    ),
    (
        "association in an account of others",
        put("    account: physics\n    fairshare: 5\n", "    account: science\n    fairshare: 5\n"),
        "account: science",
        "an association is in science, which alice does not have",
        "HPC1523",
    ),
    (
        "negative shares",
        put("fairshare: 60", "fairshare: -1"),
        "fairshare: -1",
        "shares",
        "HPC1040",
    ),
    ("shares in words", put("fairshare: 60", "fairshare: lots"), "lots", "shares", "HPC1040"),
    ("jobs in words", put("max_jobs: 3", 'max_jobs: "3"'), "max_jobs", "whole number", "HPC1038"),
    ("negative jobs", put("max_jobs: 3", "max_jobs: -3"), "max_jobs", "at least 0", "HPC1039"),
    ("time in words", put("2-00:00:00", "2d"), "max_wall: 2d", "2d is no time limit", "HPC1209"),
)


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad[0].replace(" ", "-"))
def test_mistake_is_found_where_it_stands(
    charged: SiteFolder, bad: tuple[str, Edit, str, str, str]
) -> None:
    name, edit, at, says, code = bad
    if name == "association of one who leaves":
        charged.edit(ACCOUNTS, "", "  - {user: bob, account: chemistry}\n")
    charged.edit(*edit)
    problems = [problem for problem in found(charged) if says in problem.message]
    assert len(problems) == 1
    problem = problems[0]
    assert problem.code == code
    assert problem.hint
    assert problem.where is not None
    line = problem.where.path.read_text().splitlines()[problem.where.line - 1]
    assert at in line


GOOD = (
    ("as it is", put("", "")),
    (
        "user of an association only",
        put(
            "user: alice\n    account: physics\n    fair",
            "user: alice\n    account: chemistry\n    fair",
        ),
    ),
    ("user who leaves", (SITE, "    accounts: [chemistry]\n", "    state: absent\n")),
    (
        "default account",
        (SITE, "accounts: [chemistry]", "accounts: [chemistry]\n    default_account: chemistry"),
    ),
    (
        "verification without an account of its own",
        (
            SITE,
            "    accounts: [chemistry]\n",
            "    accounts: [chemistry]\n  - name: vera\n    uid: 2009\n",
        ),
    ),
    ("limits lifted", put("license/matlab: 2", "cpu: -1")),
    ("a size of temporary disks", put("license/matlab: 2", "fs/disk: 10T")),
    (
        "default QOS of the parent's",
        put("    fairshare: 60\n", "    fairshare: 60\n    default_qos: high\n"),
    ),
)


@pytest.mark.parametrize("good", GOOD, ids=lambda good: good[0].replace(" ", "-"))
def test_what_must_be_allowed_is(charged: SiteFolder, good: tuple[str, Edit]) -> None:
    charged.edit(*good[1])
    if good[0].startswith("verification"):
        charged.edit(SITE, "site_verify_user: alice", "site_verify_user: vera")
    assert found(charged) == []


@pytest.mark.parametrize("enforce", ["associations", "LIMITS,nojobs", "safe", "all"])
def test_verification_may_lack_an_account(folder: SiteFolder, enforce: str) -> None:
    folder.edit(SLURM, "", f"site_slurm_parameters:\n  AccountingStorageEnforce: {enforce}\n")
    (problem,) = found(folder)
    assert problem.code == "HPC1524"
    assert problem.key == "site_verify_user"
    folder.edit(SLURM, enforce, "nojobs")
    assert found(folder) == []


def test_users_need_no_account_where_none_is_asked_for(charged: SiteFolder) -> None:
    charged.edit(SITE, "    accounts: [chemistry]\n", "")
    assert [problem.code for problem in found(charged)] == ["HPC1520"]
    charged.edit(SLURM, WEIGHTS, f"{WEIGHTS}  AccountingStorageEnforce: none\n")
    assert "HPC1520" not in [problem.code for problem in found(charged)]


def test_users_without_account_are_one_doubt(charged: SiteFolder) -> None:
    charged.edit(SITE, "", "".join(f"  - name: u{n}\n    uid: {3000 + n}\n" for n in range(9)))
    (problem,) = found(charged)
    assert problem.message == "u0, u1, u2 and 6 more have no account, and can all submit no job"


def test_two_rings_are_two_mistakes(charged: SiteFolder) -> None:
    ring = "".join(f"  - {{name: r{n}, parent: r{(n + 1) % 3}}}\n" for n in range(3))
    below = "  - {name: s, parent: r0}\n  - {name: t, parent: t}\n"
    charged.edit(ACCOUNTS, "site_associations:\n", ring + below + "site_associations:\n")
    assert [problem.code for problem in found(charged)] == ["HPC1513", "HPC1513"]


def test_a_mistake_in_one_entry_hides_none_in_another(charged: SiteFolder) -> None:
    charged.edit(ACCOUNTS, "    fairshare: parent", "    fairshare: [parent]")
    charged.edit(ACCOUNTS, "partition: batch", "partition: btach")
    codes = {problem.code for problem in found(charged)}
    assert codes == {"HPC1040", "HPC1521"}


def test_thousands_of_accounts_are_held_in_seconds(charged: SiteFolder) -> None:
    chain = "".join(f"  - {{name: a{n}, parent: a{n + 1}}}\n" for n in range(3000))
    charged.edit(
        ACCOUNTS, "site_associations:\n", chain + "  - {name: a3000}\nsite_associations:\n"
    )
    start = time.monotonic()
    assert found(charged) == []
    assert time.monotonic() - start < 20


def test_two_groups_of_one_gid_are_one_to_the_kernel(folder: SiteFolder) -> None:
    folder.edit(
        SITE, "    gid: 2000\n", "    gid: 2000\n  - name: students\n    gid: 2000  # again\n"
    )
    (problem,) = found(folder)
    assert (problem.code, problem.message) == (
        "HPC1504",
        "students has the same gid as research: 2000",
    )
    assert problem.where is not None
    assert problem.where.line == folder.line(SITE, "# again")
    # A number may be both: users and groups are told apart.
    folder.edit(SITE, "gid: 2000  # again", "gid: 2001")
    assert found(folder) == []
