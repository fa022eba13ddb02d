"""Keys of Slurm's files, by release, and the values that Slurm's parsers take."""

import json
from importlib.resources import files

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcsite.site.cgroup_parameters import SINCE
from hpcsite.slurm.keys import (
    Key,
    KeyProblem,
    all_keys,
    arity,
    find_key,
    key_problem,
    known_keys,
    meaning,
    sections,
    table_releases,
)
from hpcsite.slurm.values import count_of, mib_of, value_problem, whole_number

CONF = "slurm.conf"
DATA = files("hpcsite.slurm") / "data"


def _problem(version: str, name: str, section: str = "global", file: str = CONF) -> KeyProblem:
    problem = key_problem(version, file, section, name)
    assert problem is not None, name
    return problem


def test_releases_and_sections_of_the_table() -> None:
    assert table_releases() == ("23.11", "24.05", "24.11", "25.05", "25.11", "26.05")
    assert {key.file for key in all_keys()} == {
        "slurm.conf",
        "gres.conf",
        "cgroup.conf",
        "slurmdbd.conf",
    }
    assert {"global", "NodeName", "PartitionName", "NodeSet"} <= set(sections(CONF))
    assert sections("Slurm.conf") == sections(CONF)


def test_known_keys() -> None:
    before = known_keys("25.05.9", CONF)
    after = known_keys("25.11.8-1.el9", CONF)
    assert "AccountingStorageUser" in before
    assert "AccountingStorageUser" not in after
    assert "MetricsType" in after
    assert "MetricsType" not in before
    assert "RealMemory" in known_keys("24.11.5-4+deb13u1", CONF, "NodeName")
    assert "RealMemory" not in known_keys("24.11.5", CONF)


@pytest.mark.parametrize(
    ("file", "section", "name"),
    [
        (CONF, "global", "SlurmctldParameters"),
        (CONF, "GLOBAL", "slurmctldparameters"),
        (CONF, "nodename", "REALMEMORY"),
        (CONF, "PartitionName", "MaxTime"),
        ("gres.conf", "entry", "File"),
        ("cgroup.conf", "global", "ConstrainRAMSpace"),
        ("SlurmDBD.conf", "global", "StorageLoc"),
    ],
)
def test_good_key_in_any_case(file: str, section: str, name: str) -> None:
    assert key_problem("24.11.5", file, section, name) is None


def test_unknown_key_and_the_nearest() -> None:
    problem = _problem("24.11.5", "SchedulrParameters")
    assert (problem.kind, problem.nearest) == ("unknown", "SchedulerParameters")
    assert problem.hint == "did you mean SchedulerParameters?"
    assert "Slurm 24.11" in problem.message
    assert problem.note == ""
    far = _problem("24.11.5", "Nonsense")
    assert (far.kind, far.nearest) == ("unknown", "")
    assert "slurm.conf(5)" in far.hint


def test_nearest_key_is_one_of_the_release() -> None:
    assert _problem("26.05.4", "MetricType").nearest == "MetricsType"
    assert _problem("24.11.5", "MetricType").nearest != "MetricsType"


def test_unknown_key_that_belongs_elsewhere() -> None:
    assert (
        _problem("24.11.5", "RealMemory").hint == "it belongs on the NodeName lines of slurm.conf"
    )
    assert _problem("24.11.5", "ConstrainRAMSpace").hint == "it belongs in cgroup.conf"


def test_defunct_key() -> None:
    assert key_problem("25.05.9", CONF, "global", "AccountingStorageUser") is None
    problem = _problem("25.11.8", "accountingstorageuser")
    assert (problem.kind, problem.since) == ("defunct", "25.11")
    assert "AccountingStorageUser of slurm.conf is defunct since Slurm 25.11" in problem.message
    assert "slurmdbd.conf" in problem.hint
    oldest = _problem("24.11.5", "ExtSensorsType")
    assert (oldest.kind, oldest.hint) == ("defunct", "remove ExtSensorsType")
    assert "or an earlier release" in oldest.message


def test_key_of_a_later_release() -> None:
    problem = _problem("25.05.9", "MetricsType")
    assert (problem.kind, problem.since) == ("not yet", "25.11")
    assert "25.11" in problem.hint
    assert key_problem("25.11.0", CONF, "global", "MetricsType") is None


def test_key_that_is_gone() -> None:
    assert key_problem("25.05.9", CONF, "global", "AccountingStorageLoc") is None
    problem = _problem("25.11.8", "AccountingStorageLoc")
    assert (problem.kind, problem.since) == ("removed", "25.11")
    assert "slurmdbd.conf" in problem.hint
    assert _problem("25.05.9", "State", "FrontendName").kind == "removed"


def test_version_outside_of_the_table_is_judged_by_the_nearest_and_says_so() -> None:
    assert _problem("22.05.8", "TLSType").note.endswith("judged as 23.11")
    assert _problem("27.11.0", "AccountingStorageUser").note.endswith("judged as 26.05")
    assert _problem("", "AccountingStorageUser").note.endswith("judged as 26.05")


def test_file_and_section_that_there_are_not() -> None:
    with pytest.raises(KeyError, match="topology"):
        known_keys("24.11", "topology.conf")
    with pytest.raises(KeyError, match="Nodes"):
        key_problem("24.11", CONF, "Nodes", "State")


# The first example reads the data, which a busy computer may take its time for.
@settings(deadline=None)
@given(st.sampled_from(table_releases()), st.text(max_size=15))
def test_no_key_makes_the_search_fail(release: str, name: str) -> None:
    problem = key_problem(release, CONF, "global", name)
    known = {key.lower() for key in known_keys(release, CONF)}
    assert (problem is None) == (name.lower() in known)


@pytest.mark.parametrize("key", all_keys(), ids=lambda key: f"{key.file}-{key.section}-{key.name}")
def test_every_key_has_one_state_in_every_release(key: Key) -> None:
    releases = table_releases()
    assert set(key.defunct_in) <= set(key.known_in) <= set(releases)
    first, last = releases.index(key.known_in[0]), releases.index(key.known_in[-1])
    assert key.known_in == releases[first : last + 1], "known without a gap"
    assert key.defunct_in in ((), key.known_in[-len(key.defunct_in) :]), "defunct to the end"
    for number, release in enumerate(releases):
        problem = key_problem(f"{release}.1", key.file, key.section, key.name)
        wanted = "not yet" if number < first else "removed" if number > last else None
        wanted = "defunct" if release in key.defunct_in else wanted
        assert (problem.kind if problem else None) == wanted


def test_keys_of_cgroup_conf_are_as_new_as_elsewhere_in_hpcsite() -> None:
    for name, (year, month) in SINCE.items():
        key = find_key("cgroup.conf", "global", name)
        assert key, name
        since = f"{year}.{month:02}"
        assert key.known_in[0] == max(since, table_releases()[0]), name


def test_data_says_where_it_is_from() -> None:
    about = json.loads((DATA / "keys.json").read_text(encoding="utf-8"))["_about"]
    assert "src/common/read_config.c" in about
    values = yaml.safe_load((DATA / "values.yml").read_text(encoding="utf-8"))
    assert set(values) == {"lists", "meanings", "instead"}
    for entries in values.values():
        for entry in entries:
            assert entry["source"].endswith(".conf(5)")


def test_what_is_said_of_values_is_of_keys_that_there_are() -> None:
    values = yaml.safe_load((DATA / "values.yml").read_text(encoding="utf-8"))
    for kind in ("lists", "meanings"):
        for entry in values[kind]:
            assert entry["keys"] == sorted(entry["keys"], key=str.lower)
            for name in entry["keys"]:
                key = find_key(entry["file"], entry["section"], name)
                assert key, name
                assert key.name == name
                assert key.type == "string" or kind == "meanings"
    for entry in values["instead"]:
        key = find_key(entry["file"], "global", entry["key"])
        assert key
        assert key.defunct_in or key.known_in[-1] != table_releases()[-1]


def test_how_many_values_a_key_takes() -> None:
    assert arity(CONF, "global", "SlurmctldHost") == arity(CONF, "global", "prolog") == "lines"
    assert arity(CONF, "global", "GresTypes") == "list"
    assert arity(CONF, "PartitionName", "AllowAccounts") == "list"
    assert arity(CONF, "global", "SlurmctldTimeout") == "one"
    assert arity(CONF, "PartitionName", "Hidden") == "one"
    assert arity(CONF, "global", "SlurmctldLogFile") is None
    assert arity(CONF, "global", "Nonsense") is None


def test_what_a_value_means() -> None:
    assert meaning(CONF, "partitionname", "MAXTIME") == "time"
    assert meaning(CONF, "NodeName", "RealMemory") == "memory_mib"
    assert meaning("gres.conf", "entry", "Count") == "count"
    assert meaning(CONF, "global", "ClusterName") is None


@pytest.mark.parametrize(
    ("section", "name", "value"),
    [
        ("global", "DisableRootJobs", "yes"),
        ("global", "DisableRootJobs", "DOWN"),
        ("global", "SlurmctldTimeout", "65535"),
        ("global", "SlurmctldTimeout", "0x10"),
        ("global", "KeepAliveTime", "UNLIMITED"),
        ("NodeName", "RealMemory", "512000"),
        ("PartitionName", "MaxNodes", "infinite"),
        ("PartitionName", "MaxTime", "anything at all"),
        ("global", "Nonsense", "anything at all"),
    ],
)
def test_good_value(section: str, name: str, value: str) -> None:
    assert value_problem(CONF, section, name, value) is None


@pytest.mark.parametrize(
    ("section", "name", "value", "said"),
    [
        ("global", "DisableRootJobs", "maybe", "yes or no"),
        ("global", "SlurmctldTimeout", "65536", "at most 65535"),
        ("global", "SlurmctldTimeout", "-1", "whole number"),
        ("global", "SlurmctldTimeout", "5m", "whole number"),
        ("global", "SlurmctldTimeout", "", "whole number"),
        ("global", "slurmctldtimeout", "08", "SlurmctldTimeout"),
        ("NodeName", "RealMemory", "512G", "of MiB, without a suffix"),
        ("PartitionName", "MaxNodes", "4294967296", "at most 4294967295"),
    ],
)
def test_bad_value(section: str, name: str, value: str, said: str) -> None:
    assert said in str(value_problem(CONF, section, name, value))


def test_values_of_other_files() -> None:
    assert value_problem("cgroup.conf", "global", "AllowedRAMSpace", "99.5") is None
    for good in ("0", "+1.", ".5", "1e2"):
        assert value_problem("cgroup.conf", "global", "AllowedRAMSpace", good) is None
    for wrong in ("most", "-1", "nan", "1_0"):
        said = value_problem("cgroup.conf", "global", "AllowedRAMSpace", wrong)
        assert said == f"AllowedRAMSpace is a number, and not {wrong!r}"
    assert value_problem("gres.conf", "entry", "Count", "20G") is None
    assert "K, M" in str(value_problem("gres.conf", "entry", "Count", "20X"))


def test_sizes() -> None:
    assert (count_of("4"), count_of("2k"), count_of("1P")) == (4, 2048, 1024**5)
    assert (mib_of("512"), mib_of("64G"), mib_of("1t")) == (512, 65536, 1024**2)
    assert (mib_of("1K"), mib_of("1024K"), mib_of("1025K"), mib_of("0")) == (1, 1, 2, 0)
    for text in ("", "G", "-1", "1.5G", "1GB", "1 G"):
        assert count_of(text) is mib_of(text) is None
    assert mib_of("1P") is None


@given(st.integers(0, 2**70))
def test_whole_numbers(number: int) -> None:
    assert whole_number(str(number)) == number
    assert whole_number(hex(number)) == number
    assert whole_number(f"0{number:o}") == number
    too_large = value_problem(CONF, "NodeName", "RealMemory", str(number))
    assert (too_large is None) == (number < 2**64)


@given(st.text(max_size=12))
def test_no_text_makes_reading_a_value_fail(text: str) -> None:
    count_of(text)
    mib_of(text)
    for section, name in (("global", "SlurmctldTimeout"), ("NodeName", "RealMemory")):
        value_problem(CONF, section, name, text)
