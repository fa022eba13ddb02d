"""Versions of packages: what is one, and their order."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsite.site.compatibility.versions import (
    Order,
    PackageVersion,
    Style,
    is_update_of,
    leading_numbers,
    numbers,
    order,
    read_package,
)

VERSIONS = st.from_regex(r"([0-9]:)?[0-9][a-z0-9.+~^]{0,8}(-[a-z0-9.+~]{1,6})?", fullmatch=True)


def _read(text: str) -> PackageVersion:
    version = read_package(text)
    assert version is not None, text
    return version


def _key(style: Style) -> Callable[[str], Order]:
    return lambda text: order(_read(text), style)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("24.11.5-4+deb13u1", ("24.11.5", "4+deb13u1", 0)),
        ("580.65.06", ("580.65.06", "", 0)),
        ("1:4.2.3-1", ("4.2.3", "1", 1)),
        ("6.12.118+deb13-amd64", ("6.12.118+deb13", "amd64", 0)),
        ("5.14.0-427.13.1.el9_4.x86_64", ("5.14.0", "427.13.1.el9_4.x86_64", 0)),
        ("20.11.7+really20.11.4-2+deb11u1", ("20.11.7+really20.11.4", "2+deb11u1", 0)),
        ("6.1.0-37-amd64", ("6.1.0-37", "amd64", 0)),
    ],
)
def test_version_falls_into_its_parts(text: str, parts: tuple[str, str, int]) -> None:
    version = _read(text)
    assert (version.upstream, version.revision, version.epoch) == parts
    assert str(version) == text


@pytest.mark.parametrize(
    "text", ["", "latest", "580.*", "v1.2", "1.2 3", ">=1", "\uff11.2", "1.2-", ":1"]
)
def test_what_is_no_version(text: str) -> None:
    assert read_package(text) is None


def test_numbers() -> None:
    assert numbers("580.65.06") == (580, 65, 6)
    assert numbers("13") == (13,)
    assert numbers("13.0a") is numbers("") is numbers("1..2") is None
    assert leading_numbers("6.12.118+deb13") == (6, 12, 118)
    assert leading_numbers("el9") is None


# Each version is below the next.
DEB = [
    ["1.0~rc1-1", "1.0-1~bpo1", "1.0-1", "1.0-1+b1", "1.0-1.1", "1.0-2", "1.0a-1", "1.0+git-1"],
    ["24.11.5-4", "24.11.5-4+deb13u1", "24.11.5-4+deb13u2", "24.11.5-4+deb13u10", "24.11.5-5"],
    ["9.9.1-1", "9.10-1", "1:0.1-1"],
    ["525.60.13", "525.147.05", "1:1"],
]
RPM = [
    ["1.0~rc1", "1.0", "1.0^git1", "1.0.1"],
    ["1.0a", "1.0.1", "1.1", "1.10"],
    ["25.05.9-1.el9", "25.05.9-2.el9", "25.11.8-1.el9", "1:1"],
]


@pytest.mark.parametrize("rising", DEB, ids=str)
def test_order_is_that_of_dpkg(rising: list[str]) -> None:
    for lower, higher in pairwise(rising):
        assert _key("deb")(lower) < _key("deb")(higher), (lower, higher)


@pytest.mark.parametrize("rising", RPM, ids=str)
def test_order_is_that_of_rpm(rising: list[str]) -> None:
    for lower, higher in pairwise(rising):
        assert _key("rpm")(lower) < _key("rpm")(higher), (lower, higher)


def test_no_revision_is_revision_0_of_dpkg() -> None:
    assert _key("deb")("1.0") == _key("deb")("1.0-0") < _key("deb")("1.0-0.1")


def test_letters_and_separators_differ_between_dpkg_and_rpm() -> None:
    assert _key("rpm")("1.0") == _key("rpm")("1_0")
    assert _key("deb")("1.0") != _key("deb")("1+0")
    assert _key("rpm")("1.a") < _key("rpm")("1.1")
    assert _key("deb")("1.1") < _key("deb")("1.a")


@given(st.text(max_size=20))
def test_reading_never_fails(text: str) -> None:
    version = read_package(text)
    if version is not None:
        assert leading_numbers(version.upstream) is not None
        assert read_package(str(version)) == version


@pytest.mark.parametrize("style", ["deb", "rpm"])
@given(one=VERSIONS, two=VERSIONS, three=VERSIONS)
def test_order_is_total(style: Style, one: str, two: str, three: str) -> None:
    a, b, c = (_key(style)(text) for text in (one, two, three))
    assert (a < b) + (b < a) + (a == b) == 1
    low, middle, high = sorted((a, b, c))
    assert low <= middle <= high
    assert low <= high


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_numbers_are_not_compared_as_text(one: int, two: int) -> None:
    for style in ("deb", "rpm"):
        keys = [order(PackageVersion(f"1.{number}"), style) for number in (one, two)]
        assert (keys[0] < keys[1]) == (one < two)


def test_update_of_a_stable_release() -> None:
    first = _read("24.11.5-4+deb13u1")
    good = ["24.11.5-4+deb13u1", "24.11.5-4+deb13u2", "24.11.5-4+deb13u12", "24.11.5-4+deb13u1+b1"]
    bad = ["24.11.5-4", "24.11.5-5", "24.11.5-4+deb12u1", "24.11.5", "24.11.6-4+deb13u1"]
    assert all(is_update_of(_read(text), first) for text in good)
    assert not any(is_update_of(_read(text), first) for text in bad)
    assert not is_update_of(_read("1:24.11.5-4+deb13u1"), first)
    assert not is_update_of(_read("24.11.5-4+deb13u1"), _read("24.11.5-4+deb13u2"))
