import pytest

from hpcsite.site.model import SiteKeys
from hpcsite.slurm.change import needed_action
from hpcsite.slurm.cluster import Controller, Node, Paths, Server
from hpcsite.slurm.conf import Line, parse_slurm_conf
from hpcsite.slurm.gres import GroupGres
from hpcsite.slurm.hardware import Machine
from hpcsite.slurm.render import render_slurm_conf

PATHS = Paths("/srv/state", "/var/spool/slurmd")
HEAD = Controller("head", "10.0.0.10", "head")
GPU = {"name": "gpu", "node_groups": ["gpu"], "default": True}


def keys(**more: object) -> SiteKeys:
    base = {"name": "lab", "node_groups": {"gpu": {"gpus": {"count": 8}}}, "partitions": [GPU]}
    return SiteKeys.model_validate(base | more)


def slurm_conf(site: SiteKeys, controller: Controller = HEAD, *, topology: bool = False) -> str:
    nodes = [
        Node(f"{name}1", f"{name}1", name, Machine(8, 1, 8, 1, 8000, GroupGres(group).of(None)))
        for name, group in site.node_groups.items()
    ]
    return render_slurm_conf(site, controller, PATHS, nodes, "cgroup", topology=topology)


def cluster(site: SiteKeys) -> Line:
    return parse_slurm_conf(slurm_conf(site)).keys


def partitions(*more: dict[str, object], **site: object) -> dict[str, Line]:
    text = slurm_conf(keys(partitions=[GPU | each for each in more], **site))
    return parse_slurm_conf(text).partitions


def test_each_field_of_a_partition_has_its_key() -> None:
    fields: dict[str, object] = {
        "qos": "part-gpu",
        "allow_accounts": ["physics", "bio"],
        "allow_qos": ["normal", "high"],
        "allow_groups": ["research"],
        "priority_tier": 5,
        "max_nodes": 4,
        "oversubscribe": "FORCE:2",
    }
    line = partitions(fields)["gpu"]
    assert line == line | {
        "qos": "part-gpu",
        "allowaccounts": "physics,bio",
        "allowqos": "normal,high",
        "allowgroups": "research",
        "prioritytier": "5",
        "maxnodes": "4",
        "oversubscribe": "FORCE:2",
    }


def test_what_a_partition_leaves_out_is_not_in_its_line() -> None:
    assert slurm_conf(keys()).splitlines()[-1] == (
        "PartitionName=gpu Nodes=gpu1 Default=YES MaxTime=UNLIMITED State=UP"
    )


def test_free_parameters_of_a_partition_come_last() -> None:
    fields = {"oversubscribe": "EXCLUSIVE", "parameters": {"LLN": True}}
    line = slurm_conf(keys(partitions=[GPU | fields])).splitlines()[-1]
    assert line.endswith("State=UP OverSubscribe=EXCLUSIVE LLN=YES")


def test_backup_controllers_follow_the_primary_in_order() -> None:
    backups = (Server("head2", "10.0.0.11"), Server("head3", "head3"))
    text = slurm_conf(keys(), Controller("head", "10.0.0.10", "head", backups))
    assert [line for line in text.splitlines() if line.startswith("SlurmctldHost")] == [
        "SlurmctldHost=head(10.0.0.10)",
        "SlurmctldHost=head2(10.0.0.11)",
        "SlurmctldHost=head3",
    ]


@pytest.mark.parametrize("backups", [(), ("a",), ("b", "a"), ("a", "c")])
def test_any_change_of_the_controllers_restarts_slurmctld(backups: tuple[str, ...]) -> None:
    before, after = (
        slurm_conf(keys(), Controller("head", "head", None, tuple(Server(n, n) for n in names)))
        for names in (("a", "b"), backups)
    )
    assert needed_action(before, after) == "restart"
    assert needed_action(before, before) == "none"


def test_limits_are_enforced_where_there_are_any() -> None:
    assert "accountingstorageenforce" not in cluster(keys())
    accounts = {"accounts": [{"name": "physics"}]}
    assert cluster(keys(**accounts))["accountingstorageenforce"] == "associations,limits,qos"
    own = keys(**accounts, slurm_parameters={"AccountingStorageEnforce": "safe,limits"})
    assert cluster(own)["accountingstorageenforce"] == "associations,limits,qos,safe"
    off = keys(qos=[{"name": "high"}], slurm_parameters={"AccountingStorageEnforce": None})
    assert "accountingstorageenforce" not in cluster(off)


def test_without_a_database_nothing_is_enforced() -> None:
    text = slurm_conf(keys(accounts=[{"name": "physics"}]), Controller("head", "head"))
    assert "AccountingStorage" not in text


def test_gres_of_all_kinds_are_managed_and_accounted() -> None:
    groups = {
        "gpu": {
            "gpus": {"count": 8, "type": "h100"},
            "mig": [{"nodes": "gpu9", "profiles": {"1g.10gb": 7}}],
        },
        "viz": {"gpus": {"count": 2}, "shards": 16},
    }
    qos = [{"name": "high", "grp_tres": {"cpu": 9, "gres/gpu:h100": 4, "license/ansys": 2}}]
    values = cluster(keys(node_groups=groups, qos=qos))
    assert values["grestypes"] == "gpu,shard"
    assert values["accountingstoragetres"] == (
        "gres/gpu,gres/shard,gres/gpu:1g.10gb,gres/gpu:h100,license/ansys"
    )


def test_a_topology_names_its_plugin() -> None:
    site = keys(slurm_topology="block")
    assert "TopologyPlugin=topology/block\n" in slurm_conf(site, topology=True)
    assert "TopologyPlugin" not in slurm_conf(site)


def test_a_site_where_nothing_preempts_says_nothing_of_it() -> None:
    assert "Preempt" not in slurm_conf(keys(qos=[{"name": "a"}], partitions=[GPU]))
    assert partitions({"preempt_mode": "OFF"})["gpu"]["preemptmode"] == "OFF"


def test_a_qos_that_preempts_chooses_the_plugin() -> None:
    qos = [{"name": "low"}, {"name": "high", "preempt": ["low"]}]
    values = cluster(keys(qos=qos, partitions=[GPU | {"preempt_mode": "CANCEL"}]))
    assert (values["preempttype"], values["preemptmode"]) == ("preempt/qos", "REQUEUE")


def test_a_partition_is_preempted_only_where_it_says_so() -> None:
    found = partitions({}, {"name": "spare", "preempt_mode": "CANCEL", "default": False})
    assert found["spare"]["preemptmode"] == "CANCEL"
    assert found["gpu"]["preemptmode"] == "OFF"


def test_the_site_s_own_mode_of_preemption_holds_for_all_partitions() -> None:
    own = {"PreemptMode": "CANCEL"}
    spare = GPU | {"name": "spare", "preempt_mode": "REQUEUE", "default": False}
    conf = parse_slurm_conf(slurm_conf(keys(partitions=[GPU, spare], slurm_parameters=own)))
    assert conf.keys["preempttype"] == "preempt/partition_prio"
    assert conf.keys["preemptmode"] == "CANCEL"
    assert "preemptmode" not in conf.partitions["gpu"]


@pytest.mark.parametrize(
    ("own", "kind", "mode"),
    [
        ({"PreemptType": "preempt/none"}, "preempt/none", None),
        ({"PreemptType": None}, None, None),
        ({"preempttype": "preempt/partition_prio"}, "preempt/partition_prio", "REQUEUE"),
    ],
)
def test_the_site_s_own_type_of_preemption_holds(
    own: dict[str, str | None], kind: str | None, mode: str | None
) -> None:
    qos = [{"name": "low"}, {"name": "high", "preempt": ["low"]}]
    text = slurm_conf(keys(qos=qos, slurm_parameters=own))
    found = parse_slurm_conf(text)
    assert (found.keys.get("preempttype"), found.keys.get("preemptmode")) == (kind, mode)
    assert ("PreemptMode=OFF" in text) is (kind == "preempt/partition_prio")


def test_jobs_that_take_turns_preempt_nobody() -> None:
    site = keys(partitions=[GPU | {"preempt_mode": "GANG"}, GPU | {"name": "b", "default": False}])
    text = slurm_conf(site)
    assert "PreemptType" not in text
    assert "\nPreemptMode=GANG\n" in text
    assert not [
        line for line in parse_slurm_conf(text).partitions.values() if "preemptmode" in line
    ]


@pytest.mark.parametrize("mode", ["SUSPEND", "SUSPEND,GANG"])
def test_suspended_jobs_need_the_gang_scheduler(mode: str) -> None:
    site = keys(partitions=[GPU | {"preempt_mode": mode}])
    assert cluster(site)["preemptmode"] == "REQUEUE,GANG"
    assert parse_slurm_conf(slurm_conf(site)).partitions["gpu"]["preemptmode"] == "SUSPEND"
