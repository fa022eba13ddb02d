import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsite.errors import InvalidSiteError
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
    refused = refused_parameters({"Nodes": "a", "OverSubscribe": "NO"}, OWNED_OF_PARTITION)
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
