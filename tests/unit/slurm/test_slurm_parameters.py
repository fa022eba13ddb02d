import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsite.errors import InvalidSiteError
from hpcsite.site.cgroup_parameters import is_yes, refused_cgroup_parameters
from hpcsite.site.model import SiteKeys
from hpcsite.site.parameters import OWNED_OF_PARTITION, refused_parameters
from hpcsite.slurm.parameters import check_parameters, written


@pytest.mark.parametrize("key", ["ClusterName", "clustername", "NodeName", "SlurmctldPort"])
def test_keys_that_the_inventory_decides_are_refused(key: str) -> None:
    assert list(refused_parameters({key: "x", "SlurmdTimeout": 60})) == [key]


def test_a_refusal_says_where_the_key_belongs() -> None:
    refused = refused_parameters({"ProctrackType": "proctrack/pgid"})
    assert "site_slurm_process_tracking" in refused["ProctrackType"].hint


@pytest.mark.parametrize("value", ["a\nNodeName=evil", "5 # five", 'say "no"', "a\\"])
def test_values_that_would_break_out_of_their_line_are_refused(value: str) -> None:
    assert "holds" in refused_parameters({"SlurmdTimeout": value})["SlurmdTimeout"].why


@pytest.mark.parametrize("key", ["Slurmd Timeout", "Slurmd=1", "", "9"])
def test_what_is_no_key_is_refused(key: str) -> None:
    assert key in refused_parameters({key: 1})


def test_a_key_given_twice_in_other_case_is_refused() -> None:
    assert list(refused_parameters({"KillWait": 30, "killwait": 60})) == ["killwait"]


def test_what_nodes_fetch_their_configuration_by_cannot_be_taken_away() -> None:
    assert (
        "enable_configless"
        in refused_parameters({"slurmctldParameters": None})["slurmctldParameters"].hint
    )
    assert refused_parameters({"SlurmctldParameters": "idle_on_node_suspend"}) == {}


def test_null_and_numbers_pass() -> None:
    assert refused_parameters({"DefMemPerCPU": None, "KillWait": 30, "PriorityType": "x"}) == {}


def test_partitions_own_other_keys() -> None:
    refused = refused_parameters({"Nodes": "a", "LLN": "NO"}, OWNED_OF_PARTITION)
    assert list(refused) == ["Nodes"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "YES"), (False, "NO"), (30, "30"), (0.5, "0.5"), ("a,b", "a,b"), ("a b", '"a b"')],
)
def test_values_are_spelled_as_slurm_does(value: str | int | float | bool, text: str) -> None:
    assert written(value) == text


@given(st.dictionaries(st.text(), st.text()))
def test_what_is_accepted_stays_on_one_line(parameters: dict[str, str]) -> None:
    for key in parameters.keys() - refused_parameters(parameters).keys():
        line = f"{key}={written(parameters[key])}"
        assert "#" not in line
        assert len(line.splitlines()) == 1


def test_all_refusals_come_together() -> None:
    keys = SiteKeys.model_validate(
        {
            "name": "lab",
            "slurm_parameters": {"ClusterName": "x", "SlurmUser": "root"},
            "partitions": [
                {"name": "gpu", "node_groups": ["gpu"], "parameters": {"Nodes": "gpu01"}}
            ],
        }
    )
    with pytest.raises(InvalidSiteError) as caught:
        check_parameters(keys)
    assert len(caught.value.problems) == 3


def test_keys_of_cgroup_conf_that_slurmd_knows_pass() -> None:
    parameters = {
        "ConstrainDevices": False,
        "constraincores": "no",
        "AllowedSwapSpace": 12.5,
        "MinRAMSpace": 30,
        "ConstrainRAMSpace": None,
    }
    assert refused_cgroup_parameters(parameters) == {}


@pytest.mark.parametrize(
    ("key", "value", "why", "hint"),
    [
        ("ConstrainDevice", True, "no key of cgroup.conf", "did you mean ConstrainDevices?"),
        ("CgroupPlugin", "cgroup/v1", "no key of cgroup.conf", "known: "),
        ("IgnoreSystemd", True, "written by hpcsite", "systemd"),
        ("ConstrainCores", "maybe", "ConstrainCores cannot be maybe", "yes or no"),
        ("AllowedRAMSpace", "all", "AllowedRAMSpace cannot be all", "percent"),
        ("SystemdTimeout", 1.5, "SystemdTimeout cannot be 1.5", "milliseconds"),
    ],
)
def test_what_slurmd_would_end_over_is_refused(
    key: str, value: str | float | bool, why: str, hint: str
) -> None:
    refusal = refused_cgroup_parameters({key: value})[key]
    assert why in refusal.why or "written by hpcsite" in refusal.why
    assert hint in refusal.hint or "site_slurm_process_tracking" in refusal.hint


def test_a_key_of_a_later_release_is_refused() -> None:
    keys = SiteKeys.model_validate(
        {"name": "lab", "slurm_cgroup_parameters": {"SystemdTimeout": 5000}}
    )
    check_parameters(keys, "slurm-wlm 24.11.5")
    with pytest.raises(InvalidSiteError) as caught:
        check_parameters(keys, "slurm-wlm 22.05.8")
    assert "of Slurm 24.05" in str(caught.value.problems[0])


@pytest.mark.parametrize(("value", "yes"), [(True, True), ("YES", True), (False, False), (1, True)])
def test_what_slurm_takes_for_yes(value: str | float | bool, yes: bool) -> None:
    assert is_yes(value) is yes
