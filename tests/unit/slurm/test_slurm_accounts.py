"""What a site's QOS, accounts and users come to, and how slurmdbd's answers are read."""

import pytest

from hpcsite.site.model import SiteKeys
from hpcsite.slurm.accounts import declares_accounts, desired_state, render_accounts
from hpcsite.slurm.accounts_listings import account_listings, read_state
from hpcsite.slurm.accounts_state import Field, Membership


def keys(**more: object) -> SiteKeys:
    return SiteKeys.model_validate({"name": "lab", **more})


def user(name: str, **more: object) -> dict[str, object]:
    return {"name": name, "uid": 2000 + sum(map(ord, name)), **more}


SITE = {
    "qos": [
        {"name": "high", "priority": 100, "max_wall": "12:00:00", "preempt": ["low"]},
        {"name": "low", "max_tres_per_user": {"gres/gpu": 4, "mem": "512G"}},
    ],
    "accounts": [
        {"name": "science", "fairshare": 60, "description": "Faculty of Science"},
        {"name": "physics", "parent": "science", "qos": ["high", "low"], "default_qos": "low"},
    ],
    "users": [
        user("alice", accounts=["physics", "science"], default_account="science"),
        user("bob", accounts=["physics"]),
        user("carol", accounts=["physics"], state="absent"),
        user("dave"),
    ],
    "associations": [
        {"user": "alice", "account": "physics", "fairshare": "parent", "max_jobs": 3},
        {"user": "bob", "account": "physics", "partition": "gpu", "max_wall": "1-0"},
        {"user": "carol", "account": "science"},
    ],
}


def test_a_site_is_rendered_a_line_a_thing() -> None:
    assert render_accounts(keys(**SITE)).splitlines() == [
        "QOS high: priority 100, max_wall 12:00:00, preempt low",
        "QOS low: max_tres_per_user gres/gpu=4,mem=512G",
        "account physics: below science, qos high,low, default_qos low",
        "account science: below root, fairshare 60, description faculty of science",
        "user alice: default_account science",
        "user bob: default_account physics",
        "association alice in physics: fairshare parent, max_jobs 3",
        "association alice in science",
        "association bob in physics",
        "association bob in physics, partition gpu: max_wall 1-00:00:00",
    ]


def test_a_site_that_says_nothing_of_accounts_wants_nothing() -> None:
    silent = keys(users=[user("alice")], verify_user="alice")
    assert not declares_accounts(silent)
    assert render_accounts(silent) == ""
    assert declares_accounts(keys(users=[user("alice", accounts=["physics"])]))
    assert declares_accounts(keys(qos=[{"name": "high"}]))


def test_the_user_of_verification_has_an_account() -> None:
    site = {"accounts": [{"name": "physics"}], "verify_user": "hpctest", "users": [user("hpctest")]}
    state = desired_state(keys(**site))
    assert list(state.memberships) == [Membership("hpctest", "hpcsite")]
    assert state.default_accounts == {"hpctest": "hpcsite"}
    assert set(state.accounts) == {"physics", "hpcsite"}


def test_the_user_of_verification_keeps_the_account_that_the_site_gives() -> None:
    users = [user("hpctest", accounts=["physics"])]
    site = {"accounts": [{"name": "physics"}], "verify_user": "hpctest", "users": users}
    assert set(desired_state(keys(**site)).accounts) == {"physics"}


def test_root_is_slurm_s_own() -> None:
    assert desired_state(keys(accounts=[{"name": "root", "fairshare": 3}])).accounts == {}


# As sacctmgr of Slurm 24.11 prints it.
ANSWERS = {
    "qos": (
        "normal|0||||||||cluster||1.000000|\n"
        "high|100|12:00:00|||||gres/gpu=8,mem=1T|low,normal|cancel|DenyOnLimit,NoDecay|2.000000|\n"
    ),
    "accounts": (
        "physics|dept. of physics|science|\nroot|default root account|root\nelsewhere|x|y\n"
    ),
    "associations": (
        "lab|root|||1||1|||||normal|\n"
        "lab|root|root||2||1||||||\n"
        "lab|physics|||5|root|40|10|2-00:00:00|cpu=64,gres/gpu=8,mem=1T||high,normal|high\n"
        "lab|physics|alice||7||parent||||||\n"
        "lab|physics|alice|gpu|8||1|2|||node=1||\n"
        "other|elsewhere|||9|root|1||||||\n"
        "other|elsewhere|alice||10||1||||||\n"
    ),
    "users": "alice|physics\nroot|root\n",
}


def test_slurmdbd_s_answers_are_read() -> None:
    state = read_state(ANSWERS, "lab")
    assert state.qos["high"] == {
        "Priority": "100",
        "MaxWallDurationPerJob": "12:00:00",
        "MaxJobsPerUser": "",
        "MaxSubmitJobsPerUser": "",
        "MaxTRESPerUser": "",
        "MaxTRESPerJob": "",
        "GrpTRES": "gres/gpu=8,mem=1048576",
        "Preempt": "low,normal",
        "PreemptMode": "cancel",
        "Flags": "denyonlimit,nodecay",
        "UsageFactor": "2",
        "UsageThreshold": "",
    }
    assert set(state.accounts) == {"root", "physics"}
    physics = state.accounts["physics"]
    assert (physics["Parent"], physics["FairShare"], physics["MaxJobs"]) == ("root", "40", "10")
    assert physics["GrpTRES"] == "cpu=64,gres/gpu=8,mem=1048576"
    assert (physics["Description"], physics["Organization"]) == ("dept. of physics", "science")
    gpu = Membership("alice", "physics", "gpu")
    assert state.memberships[gpu]["MaxTRESPerJob"] == "node=1"
    assert state.memberships[Membership("alice", "physics")]["FairShare"] == "parent"
    assert state.ids[gpu] == "8"
    assert state.default_accounts["alice"] == "physics"
    assert {member.account for member in state.memberships} == {"root", "physics"}
    assert state.elsewhere == {"elsewhere"}
    assert state.words["elsewhere"]["Description"] == "x"


def test_each_question_names_as_many_columns_as_the_answer_has() -> None:
    for name, argv in account_listings("lab").items():
        columns = argv[-1].removeprefix("format=").split(",")
        assert {len(columns)} >= {
            len(line.rstrip("\n").split("|"))
            for line in ANSWERS[name].splitlines()
            if not line.startswith("physics|dept")
        }, name
    assert "WOPLimits" in account_listings("lab")["associations"]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("90", "01:30:00"),
        ("90:30", "01:31:00"),
        ("24:00:00", "1-00:00:00"),
        ("1-12", "1-12:00:00"),
        ("1-00:30", "1-00:30:00"),
        ("UNLIMITED", ""),
        ("-1", ""),
        ("", ""),
    ],
)
def test_a_time_has_one_form(raw: str, expected: str) -> None:
    assert Field("MaxWall", "max_wall", "time").canonical(raw) == expected


def test_tres_have_one_form_and_a_lifted_limit_is_none() -> None:
    field = Field("GrpTRES", "grp_tres", "tres")
    assert field.canonical("mem=1G,cpu=-1,gres/gpu:h100=2") == "gres/gpu:h100=2,mem=1024"
    assert field.canonical("mem=1024M,gres/gpu:h100=2") == "gres/gpu:h100=2,mem=1024"
    assert field.canonical("mem=1.50G") == "mem=1536"
    assert field.shown("mem=1536") == "mem=1536M"


def test_preempt_mode_off_is_that_of_the_cluster() -> None:
    field = Field("PreemptMode", "preempt_mode", "words")
    assert field.canonical("OFF") == field.canonical("cluster") == ""
    assert field.canonical("SUSPEND,GANG") == field.canonical("gang,suspend")
