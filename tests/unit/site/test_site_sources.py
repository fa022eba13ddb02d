"""The map from names to lines, for any YAML that people may write."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hpcsite.site.folder import Kind, SourceFile
from hpcsite.site.ini import add_ini
from hpcsite.site.sources import ALL, KeyPath, Sources, matches
from hpcsite.site.yamlfile import read_yaml
from tests.unit.site.mini import SiteFolder

_names = st.text("abcdefgh_", min_size=1, max_size=6)
_leaves = st.integers() | st.booleans() | st.text(max_size=8) | st.none()
_values = st.recursive(
    _leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_names, inner, max_size=4),
    max_leaves=20,
)


def _paths(value: object, path: KeyPath = ()) -> list[tuple[KeyPath, object]]:
    found: list[tuple[KeyPath, object]] = [(path, value)]
    if isinstance(value, dict):
        for key, child in value.items():
            found += _paths(child, (*path, key))
    if isinstance(value, list):
        for number, child in enumerate(value):
            found += _paths(child, (*path, number))
    return found


@given(st.dictionaries(_names, _values, min_size=1, max_size=4), st.booleans())
def test_every_element_has_the_line_that_it_stands_in(
    tmp_path_factory: pytest.TempPathFactory, document: dict[str, object], flow: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "map.yml"
    path.write_text(yaml.safe_dump(document, default_flow_style=flow or None), encoding="utf-8")
    lines = path.read_text(encoding="utf-8").split("\n")
    sources = Sources()
    sources.add_vars(SourceFile(path, Kind.GROUP_VARS, "all"), read_yaml(path).root)
    for name, value in document.items():
        (definition,) = sources.of(name)
        assert definition.scope == ALL
        for steps, element in _paths(value):
            line = lines[definition.locate(steps).line - 1]
            if steps and isinstance(steps[-1], str):
                assert steps[-1] in line
            elif isinstance(element, int) and not isinstance(element, bool):
                assert str(element) in line


def test_what_does_not_exist_has_the_line_of_what_holds_it(folder: SiteFolder) -> None:
    path = folder.path / "group_vars/all/slurm.yml"
    sources = Sources()
    sources.add_vars(SourceFile(path, Kind.GROUP_VARS, "all"), read_yaml(path).root)
    (definition,) = sources.of("site_partitions")
    assert definition.locate((0, "nothing", 3)).line == folder.line(
        "group_vars/all/slurm.yml", "- name: batch"
    )


def test_merged_keys_have_their_own_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.yml"
    path.write_text("base: &base\n  a: 1\n  b: 1\nmore:\n  <<: *base\n  b: 2\n")
    sources = Sources()
    sources.add_vars(SourceFile(path, Kind.GROUP_VARS, "all"), read_yaml(path).root)
    (more,) = sources.of("more")
    assert [more.locate(("a",)).line, more.locate(("b",)).line] == [2, 6]


def test_ini_inventory(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text(
        "# a comment\n[gpu]\ngpu[01:04] ansible_user=root rack='a b'\n\n"
        "[gpu:vars]\nlocal_x = 1\n[slurm_compute:children]\ngpu\n"
    )
    sources = Sources()
    add_ini(sources, SourceFile(path, Kind.INVENTORY))
    assert str(sources.where_host("gpu03")) == f"{path}:3"
    assert str(sources.where_group("slurm_compute")) == f"{path}:7"
    lines = {d.name: (str(d.scope), d.where.line) for d in sources.definitions}
    assert lines == {
        "ansible_user": ("the host gpu[01:04]", 3),
        "rack": ("the host gpu[01:04]", 3),
        "local_x": ("the group gpu", 6),
    }


@pytest.mark.parametrize(
    ("pattern", "host", "expected"),
    [
        ("gpu01", "gpu01", True),
        ("gpu01", "gpu02", False),
        ("gpu[01:08]", "gpu03", True),
        ("gpu[01:08]", "cpu03", False),
        ("r[a:c]n[1:3]", "rbn2", True),
        ("gpu[01:08:2].x", "gpu03yx", False),
    ],
)
def test_host_patterns(pattern: str, host: str, expected: bool) -> None:
    assert matches(pattern, host) is expected
