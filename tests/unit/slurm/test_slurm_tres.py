"""TRES as Slurm writes them: what is one, what is none, and how many of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsite.slurm.tres import PLAIN, Tres, read_count, read_tres


@pytest.mark.parametrize(
    ("text", "tres"),
    [
        *((name, Tres(name)) for name in PLAIN),
        ("gres/gpu", Tres("gres", "gpu")),
        ("gres/gpu:h100", Tres("gres", "gpu", "h100")),
        ("gres/gpu:nvidia_a100_1g.10gb", Tres("gres", "gpu", "nvidia_a100_1g.10gb")),
        ("license/matlab", Tres("license", "matlab")),
        ("fs/disk", Tres("fs", "disk")),
        ("bb/datawarp", Tres("bb", "datawarp")),
    ],
)
def test_what_is_a_tres(text: str, tres: Tres) -> None:
    assert read_tres(text) == tres
    assert str(tres) == text


@pytest.mark.parametrize(
    "text",
    [
        *("", "cpus", "memory", "gpu", "gpus", "nodes", "CPU", "gres", "gres/", "gres/:h100"),
        *("gres/gpu:", "gres/gpu:a:b", "cpu/x", "mem/", "license", "license/a:b", "fs/disk:x"),
        *("gres/gpu h100", "gres/a/b", "gres/gpu\n", "gres/gpü"),
    ],
)
def test_what_is_none(text: str) -> None:
    assert read_tres(text) is None


@pytest.mark.parametrize(
    ("tres", "value", "count"),
    [
        ("cpu", 4, 4),
        ("cpu", "4", 4),
        ("cpu", -1, -1),
        ("cpu", "4K", None),
        ("gres/gpu", "1G", None),
        ("mem", 512, 512),
        ("mem", "512", 512),
        ("mem", "512M", 512),
        ("mem", "2G", 2048),
        ("mem", "2g", 2048),
        ("mem", "1T", 1024**2),
        ("mem", "1P", 1024**3),
        ("mem", "2048K", 2),
        ("mem", "1K", 1),
        ("fs/disk", "1G", 1024),
        ("mem", "", None),
        ("mem", "1.5G", None),
        ("mem", "٣", None),
    ],
)
def test_counts(tres: str, value: int | str, count: int | None) -> None:
    known = read_tres(tres)
    assert known is not None
    assert read_count(known, value) == count


@given(st.text(max_size=20))
def test_any_text_is_read_and_written_back(text: str) -> None:
    tres = read_tres(text)
    assert tres is None or str(tres) == text
