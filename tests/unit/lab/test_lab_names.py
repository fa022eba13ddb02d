"""Names that the kernel, nft and systemd accept, and that do not collide."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsite.lab import names

site_names = st.from_regex(r"\A[a-z][a-z0-9_-]{0,62}\Z")


@given(site_names)
def test_a_bridge_fits_the_kernels_limit(site: str) -> None:
    assert len(names.bridge(site)) <= names.INTERFACE_NAME_MAX


def test_a_short_name_is_kept() -> None:
    assert names.bridge("lab") == "hpc-lab"
    assert names.machine("lab", "gpu01") == "lab-gpu01"
    assert names.unit("lab", "gpu01") == "hpcsite-lab-gpu01.service"


def test_long_names_that_begin_alike_differ() -> None:
    assert names.bridge("university-a") != names.bridge("university-b")


@pytest.mark.parametrize("site", ["a-b", "university-cluster-two"])
def test_a_table_is_an_nft_identifier(site: str) -> None:
    assert names.table(site).replace("_", "").isalnum()
