from hpcsite.site.model import SiteKeys
from hpcsite.slurm.partition_qos import new_partition_qos, partition_qos

KEYS = SiteKeys.model_validate(
    {
        "name": "lab",
        "qos": [{"name": name} for name in ("high", "low", "part", "unused")],
        "partitions": [
            {"name": "a", "node_groups": ["g"], "qos": "part", "allow_qos": ["normal", "high"]},
            {"name": "b", "node_groups": ["g"], "qos": "part", "allow_qos": ["low"]},
        ],
    }
)


def test_qos_that_partitions_name_are_found_once_without_slurm_s_own() -> None:
    assert partition_qos(KEYS) == ("part", "high", "low")


def test_only_what_does_not_stand_is_made_and_goes_into_the_record() -> None:
    steps = new_partition_qos(KEYS, ["normal", "high", "low"])
    assert [step.argv for step in steps] == [("sacctmgr", "--immediate", "add", "qos", "name=part")]
    assert steps[0].makes == ("qos part",)
    assert new_partition_qos(KEYS, ["part", "high", "low"]) == []


def test_a_site_without_qos_makes_none() -> None:
    assert partition_qos(KEYS.model_copy(update={"qos": ()})) == ()
