"""The way from what slurmdbd has to what the site declares."""

from dataclasses import replace

from hpcsite.site.model import SiteKeys
from hpcsite.slurm.accounts import desired_state
from hpcsite.slurm.accounts_plan import AccountPlan, plan_accounts
from hpcsite.slurm.accounts_state import (
    ASSOCIATION_FIELDS,
    QOS_FIELDS,
    AccountState,
    Field,
    Membership,
    Values,
)
from hpcsite.slurm.accounts_steps import Step

ROOT = Membership("root", "root")


def unset(fields: tuple[Field, ...]) -> Values:
    return {field.option: field.unset for field in fields}


EMPTY = AccountState(
    qos={"normal": unset(QOS_FIELDS)},
    accounts={"root": {"Parent": "", **unset(ASSOCIATION_FIELDS)}},
    memberships={ROOT: unset(ASSOCIATION_FIELDS)},
    default_accounts={"root": "root"},
)


def desired(**keys: object) -> AccountState:
    users = keys.pop("users", {"alice": ["physics"]})
    assert isinstance(users, dict)
    return desired_state(
        SiteKeys.model_validate(
            {
                "name": "lab",
                "accounts": [{"name": "physics", "fairshare": 40}],
                "users": [
                    {"name": name, "uid": 2000 + number, "accounts": accounts}
                    for number, (name, accounts) in enumerate(users.items())
                ],
                **keys,
            }
        )
    )


def standing(state: AccountState) -> AccountState:
    """What slurmdbd has once a state is reached."""
    return replace(
        state,
        qos={**EMPTY.qos, **state.qos},
        accounts={**EMPTY.accounts, **state.accounts},
        memberships={**EMPTY.memberships, **state.memberships},
        default_accounts={**EMPTY.default_accounts, **state.default_accounts},
        ids={member: str(n) for n, member in enumerate(state.memberships, 10)},
    )


def plan(new: AccountState, old: AccountState, **options: object) -> AccountPlan:
    return plan_accounts(new, old, "lab", **options)  # type: ignore[arg-type]


def texts(plan: AccountPlan) -> list[str]:
    return [step.text for step in plan.steps]


def only(plan: AccountPlan) -> Step:
    (step,) = plan.steps
    return step


def keys_of(state: AccountState) -> list[str]:
    return [
        *(f"qos {name}" for name in state.qos),
        *(f"account {name}" for name in state.accounts),
        *(member.key for member in state.memberships),
    ]


def test_from_nothing_all_is_made_in_order() -> None:
    site = desired(
        qos=[{"name": "high", "preempt": ["low"]}, {"name": "low", "priority": 1}],
        accounts=[
            {"name": "optics", "parent": "physics", "qos": ["high"]},
            {"name": "physics", "fairshare": 40, "description": "Physics"},
        ],
        users={"alice": ["optics", "physics"], "bob": ["optics"]},
        associations=[{"user": "bob", "account": "physics", "partition": "gpu", "max_jobs": 2}],
    )
    made = plan(site, EMPTY)
    assert texts(made) == [
        "QOS low: new, priority 1",
        "QOS high: new, preempt low",
        "account physics: new, below root, fairshare 40",
        "account optics: new, below physics, qos high",
        "association alice, bob in optics: new",
        "association alice in physics: new",
        "association bob in physics, partition gpu: new, max_jobs 2",
    ]
    argv = [" ".join(step.argv) for step in made.steps]
    add = "sacctmgr --immediate add"
    assert argv[1] == f"{add} qos name=high Preempt=low"
    assert argv[2] == (f"{add} account name=physics cluster=lab FairShare=40 Description=physics")
    assert argv[3] == f"{add} account name=optics cluster=lab Parent=physics QosLevel=high"
    assert argv[4] == f"{add} user name=alice,bob cluster=lab account=optics"
    assert argv[6] == (f"{add} user name=bob cluster=lab account=physics partition=gpu MaxJobs=2")
    assert {"account physics", "qos high"} <= set(made.steps[3].needs)
    assert made.before == ""
    assert made.after.count("\n") == 10


def test_what_is_reached_needs_nothing() -> None:
    site = desired(qos=[{"name": "high", "flags": ["DenyOnLimit"]}])
    reached = plan(site, standing(site))
    assert reached.steps == ()
    assert reached.before == reached.after != ""


def test_exactly_what_differs_is_changed() -> None:
    old = standing(desired(qos=[{"name": "high", "max_tres_per_user": {"cpu": 8, "mem": "1G"}}]))
    new = desired(
        accounts=[{"name": "physics", "fairshare": 60, "max_jobs": 5}],
        qos=[{"name": "high", "max_tres_per_user": {"cpu": 8, "node": 2}}],
    )
    qos, account = plan(new, old).steps
    assert qos.text == "QOS high: max_tres_per_user cpu=8,mem=1G -> cpu=8,node=2"
    assert qos.argv[-1] == "MaxTRESPerUser=node=2,mem=-1"
    assert account.text == "account physics: fairshare 40 -> 60, max_jobs none -> 5"
    assert account.argv[2:] == (
        *("modify", "account", "where", "name=physics", "cluster=lab"),
        *("set", "FairShare=60", "MaxJobs=5"),
    )


def test_what_the_site_no_longer_sets_is_lifted() -> None:
    more = {"max_jobs": 5, "max_wall": "1:00:00", "qos": ["high"], "default_qos": "high"}
    qos = [{"name": "high"}]
    old = standing(desired(qos=qos, accounts=[{"name": "physics", **more}]))
    step = only(plan(desired(qos=qos, accounts=[{"name": "physics"}]), old))
    assert step.argv[-4:] == (
        *("MaxJobs=-1", "MaxWallDurationPerJob=-1", "QosLevel=", "DefaultQOS=-1"),
    )


def test_words_that_the_site_does_not_say_are_kept() -> None:
    site = desired()
    old = standing(site)
    words = {"Description": "by hand", "Organization": "somebody"}
    old = replace(
        old,
        accounts={**old.accounts, "physics": {**old.accounts["physics"], **words}},
        words={"physics": words},
    )
    kept = plan(site, old)
    assert kept.steps == ()
    assert kept.before == kept.after
    assert "by hand" in kept.after
    said = desired(accounts=[{"name": "physics", "fairshare": 40, "description": "Physics"}])
    step = only(plan(said, old))
    assert step.text == "account physics: description by hand -> physics"
    assert "cluster=lab" not in step.argv


def test_an_account_that_is_in_no_cluster_yet_gets_its_words_by_a_change() -> None:
    site = desired(accounts=[{"name": "physics", "description": "Physics"}], users={})
    words = {"physics": {"Description": "old", "Organization": "x"}}
    assert texts(plan(site, replace(EMPTY, words=words))) == [
        "account physics: new, below root",
        "account physics: description old -> physics",
    ]


def test_an_account_below_root_again_is_moved_there() -> None:
    above = {"name": "chem"}
    old = standing(desired(accounts=[above, {"name": "physics", "parent": "chem"}]))
    step = only(plan(desired(accounts=[above, {"name": "physics"}]), old))
    assert step.argv[-1] == "Parent=root"


def test_an_association_is_changed_by_its_number() -> None:
    limits = {"user": "alice", "account": "physics"}
    site = [limits, {**limits, "partition": "gpu"}]
    old = standing(desired(associations=site))
    step = only(plan(desired(associations=[{**limits, "max_jobs": 1}, site[1]]), old))
    assert step.text == "association alice in physics: max_jobs none -> 1"
    assert f"id={old.ids[Membership('alice', 'physics')]}" in step.argv


def test_another_default_account_is_set_after_it_exists() -> None:
    old = standing(desired())
    new = desired(
        accounts=[{"name": "physics", "fairshare": 40}, {"name": "chem"}],
        users={"alice": ["chem", "physics"]},
    )
    *_, last = plan(new, old).steps
    assert last.text == "user alice: default_account physics -> chem"
    assert last.argv[-4:] == ("name=alice", "cluster=lab", "set", "DefaultAccount=chem")


def test_accounts_below_one_that_moves_wait_under_root() -> None:
    def site(parent: str) -> list[dict[str, str]]:
        return [
            {"name": "optics", "parent": "physics"},
            {"name": "physics", "parent": parent},
            {"name": "science"},
        ]

    old = standing(desired(accounts=site("science")))
    by_hand = {"guests": "optics", "others": "science"}
    more = {name: {**old.accounts["optics"], "Parent": above} for name, above in by_hand.items()}
    old = replace(old, accounts={**old.accounts, **more})
    assert texts(plan(desired(accounts=site("root")), old)) == [
        "account guests: parent optics -> root",
        "account optics: parent physics -> root",
        "account physics: parent science -> root",
        "account optics: parent root -> physics",
        "account guests: parent root -> optics",
    ]


def test_what_others_made_is_left_alone() -> None:
    more = desired(
        qos=[{"name": "high"}],
        accounts=[{"name": "physics", "fairshare": 40}, {"name": "chem"}],
        users={"alice": ["physics", "chem"], "zoe": ["chem"]},
    )
    left = plan(desired(), standing(more), prune=True)
    assert left.steps == ()
    assert left.left == ()
    assert "chem" not in left.before


def test_without_prune_what_hpcsite_made_is_named_and_left() -> None:
    more = desired(qos=[{"name": "high"}], users={"alice": ["physics"], "bob": ["physics"]})
    left = plan(desired(), standing(more), made=keys_of(more))
    assert left.steps == ()
    assert [line.partition(":")[0] for line in left.left] == [
        "association bob in physics",
        "QOS high",
    ]


def test_with_prune_what_hpcsite_made_is_removed_from_below() -> None:
    more = desired(
        qos=[{"name": "high"}],
        accounts=[
            {"name": "physics", "fairshare": 40},
            {"name": "chem"},
            {"name": "dyes", "parent": "chem"},
        ],
        users={"alice": ["dyes", "physics"], "bob": ["chem", "dyes"]},
    )
    pruned = plan(desired(), standing(more), made=keys_of(more), prune=True)
    assert texts(pruned) == [
        "user alice: default_account dyes -> physics",
        "association alice in dyes: removed",
        "user bob: removed, was in chem, dyes",
        "account dyes: removed",
        "account chem: removed",
        "QOS high: removed",
    ]
    assert pruned.steps[1].jobs == ("--user=alice", "--account=dyes")
    assert pruned.steps[3].argv[2:] == ("delete", "account", "where", "name=dyes")
    assert all(step.removes for step in pruned.steps[1:])
    assert "account chem" in pruned.before
    assert "chem" not in pruned.after


def test_an_account_with_others_in_it_stays() -> None:
    more = desired(
        accounts=[{"name": "physics", "fairshare": 40}, {"name": "chem"}],
        users={"alice": ["physics"], "zoe": ["chem"]},
    )
    made = [key for key in keys_of(more) if "zoe" not in key]
    kept = plan(desired(), standing(more), made=made, prune=True)
    assert kept.steps == ()
    assert kept.left == ("account chem: no longer declared, but others are in it or below it",)


def test_normal_and_root_are_never_removed() -> None:
    old = standing(desired())
    everything = keys_of(old)
    assert {"qos normal", "account root", ROOT.key} < {*everything}
    assert plan(desired(), old, made=everything, prune=True).steps == ()


def test_absent_users_are_removed_whoever_made_them() -> None:
    old = standing(desired(users={"alice": ["physics"], "bob": ["physics"]}))
    step = only(plan(desired(), old, absent=["bob"]))
    assert step.text == "user bob: removed, was in physics"
    assert step.jobs == ("--user=bob",)
    assert step.argv[2:] == ("delete", "user", "where", "name=bob", "cluster=lab")


def test_whose_default_account_goes_gets_one_that_stays() -> None:
    more = desired(users={"alice": ["physics"], "bob": ["physics"]})
    by_hand = Membership("bob", "guests")
    old = standing(more)
    old = replace(old, memberships={**old.memberships, by_hand: unset(ASSOCIATION_FIELDS)})
    pruned = plan(desired(), old, made=keys_of(more), prune=True)
    assert texts(pruned) == [
        "user bob: default_account physics -> guests",
        "association bob in physics: removed",
    ]


def test_many_users_are_added_in_few_commands() -> None:
    site = desired(users={f"user{number:04}": ["physics"] for number in range(2000)})
    adding = [step for step in plan(site, EMPTY).steps if "association" in step.text]
    assert len(adding) == 20
    assert sum(len(step.makes) for step in adding) == 2000
