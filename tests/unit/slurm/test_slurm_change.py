import pytest

from hpcsite.slurm.change import needed_action

OLD = """\
ClusterName=lab
SlurmctldHost=head
SchedulerType=sched/backfill
NodeName=gpu[01-02] CPUs=8
PartitionName=gpu Nodes=gpu[01-02] MaxTime=60
"""


@pytest.mark.parametrize(
    ("before", "after", "action"),
    [
        ("ClusterName", "ClusterName", "none"),
        ("MaxTime=60", "MaxTime=120", "reconfigure"),
        ("gpu[01-02]", "gpu[01-03]", "reconfigure"),
        ("sched/backfill", "sched/builtin", "reconfigure"),
        ("SlurmctldHost=head", "SlurmctldHost=head2", "restart"),
        ("ClusterName=lab", "ClusterName=site", "restart"),
        ("ClusterName=lab", "ClusterName=lab\nAuthAltTypes=auth/jwt", "restart"),
    ],
)
def test_a_change_takes_what_it_needs(before: str, after: str, action: str) -> None:
    assert needed_action(OLD, OLD.replace(before, after), version="slurm-wlm 24.11.5") == action


def test_comments_case_and_folding_change_nothing() -> None:
    new = OLD.replace("ClusterName", "clustername").replace("gpu[01-02] CPUs", "gpu01,gpu02 CPUs")
    assert needed_action(OLD, "# by hand\n" + new) == "none"


def test_another_file_needs_a_reconfigure() -> None:
    assert needed_action(OLD, OLD, others_changed=True) == "reconfigure"


@pytest.mark.parametrize(
    ("before", "after"), [("gpu[01-02]", "gpu[01-03]"), ("sched/backfill", "sched/builtin")]
)
def test_before_23_11_nodes_and_plugins_need_a_restart(before: str, after: str) -> None:
    new = OLD.replace(before, after)
    assert needed_action(OLD, new, version="slurm 22.05.8") == "restart"
    assert needed_action(OLD, OLD.replace("60", "90"), version="slurm 22.05.8") == "reconfigure"


def test_a_first_configuration_is_a_restart() -> None:
    assert needed_action("", OLD) == "restart"
