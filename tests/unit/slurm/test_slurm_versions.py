"""Versions of Slurm: reading, order, and the release of a table that stands for one."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsite.slurm.versions import SlurmVersion, read_version, release_in, release_of

RELEASES = ("23.11", "24.05", "24.11", "25.05")
VERSIONS = st.builds(
    SlurmVersion,
    year=st.integers(15, 99),
    month=st.integers(1, 12),
    update=st.integers(0, 30),
    candidate=st.integers(1, 3) | st.just(1_000_000),
    package=st.sampled_from(["", "-4+deb13u1", "-1.el9"]),
)


@pytest.mark.parametrize(
    ("text", "release", "update", "package"),
    [
        ("24.11.5-4+deb13u1", "24.11", 5, "-4+deb13u1"),
        ("24.11.5", "24.11", 5, ""),
        ("slurm-wlm 24.11.5", "24.11", 5, ""),
        ("slurm 25.05.9-1.el9", "25.05", 9, "-1.el9"),
        ("slurm-26.05.4", "26.05", 4, ""),
        ("22.05.8-4+deb12u3", "22.05", 8, "-4+deb12u3"),
        ("25.11", "25.11", 0, ""),
    ],
)
def test_reading(text: str, release: str, update: int, package: str) -> None:
    version = read_version(text)
    assert version
    assert (version.release, version.update, version.package) == (release, update, package)
    assert release_of(text) == release


@pytest.mark.parametrize("text", ["", "latest", "24", "24.1", "v24.11.5", "24.11.5.1", "25.05.x"])
def test_what_is_no_version(text: str) -> None:
    assert read_version(text) is None
    assert release_of(text) is None


def test_order() -> None:
    rising = ["23.11.11", "24.05.0", "24.11.5", "24.11.10", "26.05.0-0rc1", "26.05.0rc2", "26.05.0"]
    versions = [read_version(text) for text in rising]
    for lower, higher in pairwise(versions):
        assert lower
        assert higher
        assert lower < higher


@given(VERSIONS, VERSIONS, VERSIONS)
def test_order_is_total(one: SlurmVersion, two: SlurmVersion, three: SlurmVersion) -> None:
    assert (one < two) + (two < one) + (one == two) == 1
    low, middle, high = sorted((one, two, three))
    assert low <= middle <= high
    assert low <= high


@given(VERSIONS)
def test_what_is_written_is_read(version: SlurmVersion) -> None:
    again = read_version(str(version))
    assert again == version
    assert again
    assert again.package == version.package


@given(st.text(max_size=20))
def test_no_text_makes_reading_fail(text: str) -> None:
    version = read_version(text)
    judged = release_in(text, RELEASES)
    assert judged.release in RELEASES
    assert judged.exact == (version is not None and version.release in RELEASES)
    assert judged.exact == (not judged.note)


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("24.11.5-4+deb13u1", "24.11"),
        ("24.08.1", "24.05"),
        ("22.05.8", "23.11"),
        ("27.05.1", "25.05"),
        ("unknown", "25.05"),
    ],
)
def test_release_that_stands_for_a_version(version: str, release: str) -> None:
    for releases in (RELEASES, RELEASES[::-1]):
        judged = release_in(version, releases)
        assert judged.release == release
        assert judged.exact == version.startswith(release)
        assert judged.exact or f"judged as {release}" in judged.note
