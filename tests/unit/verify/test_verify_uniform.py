from ipaddress import IPv4Network
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsite.site.model import Network, Site, Software
from hpcsite.verify.parsers.facts import Facts, Net, read_facts
from hpcsite.verify.results import Certainty
from hpcsite.verify.suites.node_uniform import SETTINGS_CHECK, VERSIONS, settings, software
from hpcsite.verify.uniform import blamed, judge, matches
from tests.unit.verify.fakeslurm import SURVEY, FakeSlurm, Runner, make_site

GOLDEN = Path(__file__).parents[2] / "golden" / "tools" / "survey"


@pytest.mark.parametrize(
    ("value", "pin", "good"),
    [
        ("25.11.8", "25.11.8", True),
        ("2.27.7", "2.27.7-1+cuda13.0", True),
        ("Open MPI 5.0.8", "5.0.8", True),
        ("13.0.0", "13.0", True),
        ("13.0", "13.0.1", None),
        ("13.1", "13.0.1", False),
        ("580.65.06", "580.65.6", True),
        ("570.1", "580.65.06", False),
        ("not there", "580.65.06", False),
        ("5.0", "latest", False),
    ],
)
def test_versions_against_pins(value: str, pin: str, *, good: bool | None) -> None:
    assert matches(value, pin) is good


def test_the_odd_one_of_three_is_likely_and_of_four_certain() -> None:
    three = judge("kernel", {"a": "1", "b": "1", "c": "2"})
    assert [(one.host, one.certainty) for one in three.odd] == [("c", Certainty.LIKELY)]
    assert three.said == ("kernel: 2 on c, but 1 on a,b",)
    four = judge("kernel", {"a": "1", "b": "1", "c": "2", "d": "1"})
    assert four.odd[0].certainty is Certainty.CERTAIN


def test_of_two_that_differ_each_is_possible() -> None:
    found = judge("kernel", {"a": "1", "b": "2"})
    assert {(one.host, one.certainty) for one in found.odd} == {
        ("a", Certainty.POSSIBLE),
        ("b", Certainty.POSSIBLE),
    }


def test_a_pin_decides_against_the_majority() -> None:
    found = judge("kernel", {"a": "6.1", "b": "6.1", "c": "6.2"}, pin="6.2", exact=True)
    assert {(one.host, one.certainty) for one in found.odd} == {
        ("a", Certainty.CERTAIN),
        ("b", Certainty.CERTAIN),
    }
    assert found.said == ("kernel: 6.1 on a,b, but 6.2 is pinned",)


def test_hosts_that_all_fit_a_pin_are_still_held_against_each_other() -> None:
    found = judge("slurm", {"a": "24.11.5", "b": "24.11.6", "c": "24.11.5"}, pin="24.11")
    assert [one.host for one in found.odd] == ["b"]


def test_what_is_pinned_and_nowhere_is_wrong() -> None:
    found = judge("nccl", {"a": "", "b": ""}, pin="2.27.7")
    assert found.said == ("nccl: not there on a,b, but 2.27.7 is pinned",)


def test_what_nobody_has_is_not_judged() -> None:
    assert judge("nccl", {"a": "", "b": ""}).prop is None
    assert judge("nccl", {}).prop is None
    assert judge("os", {}, required=True).prop is None


def test_a_tool_without_a_version_is_an_error_or_wrong_where_required() -> None:
    optional = judge("cuda", {"a": "13.0", "b": "unknown"})
    assert (optional.said, optional.unknown) == ((), ("b cannot tell its version of cuda",))
    required = judge("munge", {"a": "0.5", "b": ""}, required=True)
    assert (required.said, required.unknown) == (("b cannot tell its version of munge",), ())
    assert [one.host for one in required.odd] == ["b"]


def test_too_short_a_version_is_an_error_never_a_pass() -> None:
    found = judge("cuda", {"a": "13.0"}, pin="13.0.1")
    assert found.odd == ()
    assert found.unknown == ("cuda: 13.0 on a, which may or may not be 13.0.1, which is pinned",)


def test_a_host_is_named_once_with_all_that_is_odd() -> None:
    odd = [
        *judge("kernel", {"a": "1", "b": "1", "c": "2"}).odd,
        *judge("mtu", {"a": "9000", "b": "9000", "c": "1500", "d": "9000"}).odd,
        *judge("bios", {"a": "1", "d": "2"}).odd,
    ]
    first, *others = blamed(odd)
    assert (first.name, first.certainty) == ("c", Certainty.CERTAIN)
    assert first.because == "kernel is 2, most have 1; mtu is 1500, most have 9000"
    assert {one.name for one in others} == {"a", "d"}


@given(st.dictionaries(st.text(min_size=1), st.sampled_from(["", "1", "2", "unknown"])), st.text())
def test_something_is_said_whenever_values_differ(values: dict[str, str], pin: str) -> None:
    found = judge("x", values, pin=pin)
    if len({value for value in values.values() if value != "unknown"}) > 1:
        assert found.said or found.unknown
        assert found.odd or found.unknown
    if found.odd:
        assert found.said


def facts_of(name: str, *more: str) -> Facts:
    return read_facts(name, SURVEY.format(name=name) + "\n".join(more))


def site_with(**keys: object) -> Site:
    site = make_site(gpu03={"slurm_compute", "gpu"}, gpu04={"slurm_compute", "gpu"})
    return site.model_copy(update={"keys": site.keys.model_copy(update=keys)})


def four(**of_gpu02: str) -> dict[str, Facts]:
    """Four compute nodes and the head, of which gpu02 has something else."""
    usual = {"cuda": "13.0", "bios_version": "1.0", "runtime.podman": "podman version 5.0.1"}
    found = {"head": facts_of("head")}
    for name in ("gpu01", "gpu02", "gpu03", "gpu04"):
        values = usual | of_gpu02 if name == "gpu02" else usual
        found[name] = facts_of(name, *(f"{key}={value}" for key, value in values.items() if value))
    return found


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        ({"cuda": "12.4"}, "cuda: 12.4 on gpu02, but 13.0 on gpu[01,03-04]"),
        ({"cuda": ""}, "cuda: not there on gpu02, but 13.0 on gpu[01,03-04]"),
        (
            {"runtime.podman": "podman version 4.9.3"},
            "container_runtime: podman 4.9.3 on gpu02, but podman 5.0.1 on gpu[01,03-04]",
        ),
    ],
)
def test_an_odd_node_is_named_whatever_other_hosts_have(odd: dict[str, str], said: str) -> None:
    found = software(site_with(), four(**odd))
    assert found.said == [said]
    assert [one.host for one in found.odd] == ["gpu02"]


def test_pins_of_gpu_software_hold_on_real_gpus_only() -> None:
    pins = Software(cuda="12.9", kernel="6.12.57")
    assert software(site_with(software=pins), four()).said == []
    site = site_with(software=pins)
    real = site.keys.node_groups["gpu"].model_copy(update={"virtual": False})
    site = site_with(software=pins, node_groups={"gpu": real})
    assert software(site, four()).said == ["cuda: 13.0 on gpu[01-04], but 12.9 is pinned"]


def test_firmware_and_what_no_node_tells() -> None:
    found = settings(site_with(), four(bios_version="2.1"))
    assert found.said == ["bios_version: 2.1 on gpu02, but 1.0 on gpu[01,03-04]"]
    assert "governor" in found.not_read


def test_groups_are_not_held_against_each_other() -> None:
    site = site_with()
    groups = {"cpu": site.keys.node_groups["gpu"], "gpu": site.keys.node_groups["gpu"]}
    site = make_site(cpu01={"slurm_compute", "cpu"})
    site = site.model_copy(update={"keys": site.keys.model_copy(update={"node_groups": groups})})
    facts = {
        "gpu01": facts_of("gpu01", "bios_version=1"),
        "gpu02": facts_of("gpu02", "bios_version=1"),
        "cpu01": facts_of("cpu01", "bios_version=2"),
    }
    found = settings(site, facts)
    assert found.said == []
    assert {"bios_version (gpu)", "bios_version (cpu)"} <= {prop.name for prop in found.properties}


def on_network(name: str, *nets: Net) -> Facts:
    return Facts(name, {}, nets=nets)


def test_an_mtu_that_differs_on_a_network() -> None:
    net = Network(kind="ethernet", subnet=IPv4Network("10.1.0.0/16"), mtu=9000)
    site = site_with(networks={"data": net})
    facts = {
        f"gpu{i:02d}": on_network(f"gpu{i:02d}", Net("eth1", f"10.1.0.{i}", mtu, 100000))
        for i, mtu in ((1, 9000), (2, 1500), (3, 9000))
    }
    found = settings(site, facts)
    assert found.said == ["mtu of data: 1500 on gpu02, but 9000 is pinned"]
    assert [(one.host, one.certainty) for one in found.odd] == [("gpu02", Certainty.CERTAIN)]


def test_the_cluster_address_is_a_network_where_none_is_declared() -> None:
    site = make_site()
    hosts = {
        name: host.model_copy(update={"address": f"10.0.0.{i}"})
        for i, (name, host) in enumerate(site.hosts.items())
    }
    site = site.model_copy(update={"hosts": hosts})
    facts = {
        name: on_network(
            name,
            Net("eth0", host.address, 1400 if name == "gpu02" else 1500, 0),
            Net("docker0", "172.17.0.1", 1500, 0),
        )
        for name, host in hosts.items()
    }
    found = settings(site, facts)
    assert found.said == ["mtu of cluster: 1400 on gpu02, but 1500 on gpu01,head,login"]


def test_an_odd_clock_source_is_found_in_a_run(run_check: Runner) -> None:
    surveys = {
        name: SURVEY.format(name=name) + f"clocksource={'hpet' if name == 'gpu02' else 'tsc'}\n"
        for name in ("gpu01", "gpu02")
    }
    result = run_check(SETTINGS_CHECK, FakeSlurm(surveys=surveys))
    assert result.status == "FAIL"
    assert [culprit.name for culprit in result.culprits] == ["gpu01", "gpu02"]
    assert "gpu01,gpu02" in result.remedy


def test_settings_that_nobody_tells_are_an_error(run_check: Runner) -> None:
    silent = {name: f"hostname={name}\n" for name in ("gpu01", "gpu02", "head", "login")}
    result = run_check(SETTINGS_CHECK, FakeSlurm(surveys=silent))
    assert (result.status, result.reason) == (
        "ERROR",
        "no host said anything that can be compared",
    )


def test_a_node_with_other_software_is_the_culprit(run_check: Runner) -> None:
    odd = SURVEY.format(name="gpu02").replace("munge-0.5.16", "munge-0.5.15")
    result = run_check(VERSIONS, FakeSlurm(surveys={"gpu02": odd}))
    assert result.status == "FAIL"
    (culprit,) = result.culprits
    assert (culprit.name, culprit.certainty) == ("gpu02", "certain")
    assert culprit.because == "munge is 0.5.15, most have 0.5.16"


def test_golden_nodes_judge_without_a_word() -> None:
    text = (GOLDEN / "dgx.txt").read_text("utf-8")
    facts = {name: read_facts(name, text) for name in ("gpu01", "gpu02")}
    assert software(make_site(), facts).said == []
    assert settings(make_site(), facts).said == []
