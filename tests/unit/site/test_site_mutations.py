"""A valid site, spoilt at random: it is refused in words, quickly, and never with a traceback.

HPCSITE_MUTATIONS is how many sites are tried, e.g. 5000; the usual run tries some hundreds. Set
HPCSITE_MUTATIONS_REAL to spoil also hosts.yml, and to ask the real ansible-inventory each time.
"""

import copy
import difflib
import os
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hpcsite.errors import CouldNotRunError, InvalidSiteError, Problem
from hpcsite.site import load
from hpcsite.site.codes import CODES
from hpcsite.site.draft import HOST_KEYS
from hpcsite.site.inventory import read_inventory
from hpcsite.site.model import SiteKeys
from tests.unit.site import full_site

EXAMPLES = int(os.environ.get("HPCSITE_MUTATIONS", "250"))
REAL = bool(os.environ.get("HPCSITE_MUTATIONS_REAL"))
STYLE: dict[str, Any] = {"allow_unicode": True, "sort_keys": False}
DEEP = "put something deep here"
KEYS = (*(f"site_{name}" for name in SiteKeys.model_fields), *HOST_KEYS)

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(min_value=-(2**70), max_value=2**70),
    st.floats(),
    st.text(max_size=12),
    st.dates(),
    st.sampled_from(
        [
            *("", "root", "gpu", "gpu01", "gpu[01-02]", "gpu[02-01", "gpu[1-99999]", "a,,b", "all"),
            *("{{ x }}", "/", "/home", "/usr", "../x", "0-3", "3-0", "10.9.0.0/24", "10.9.0.300"),
            *(
                "1-00:00:00",
                "-1",
                "9" * 20,
                "gpu[1-999999999]",
                "mlx5_0",
                "HPC1617",
                "é",
                "٣",
                "\0",
            ),
            *("physics", "leaf1", "spine1", "compute", "ib", "dgx-h100", "normal", "head", "batch"),
            DEEP,
        ]
    ),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.text(max_size=8), scalars), inner, max_size=3),
    ),
    max_leaves=6,
)
OPERATIONS = ("delete", "replace", "copy", "rename", "add", "swap", "again", "item")


def places(tree: object) -> Iterator[tuple[Any, Any]]:
    """Every mapping or list of a tree with each of its keys."""
    keys = (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    )
    for key, value in list(keys):
        yield tree, key
        yield from places(value)


def spoil(files: dict[str, Any], draw: st.DrawFn) -> set[str]:
    """Change one thing in one file; the names of files in which a line is to stand twice."""
    name = draw(st.sampled_from(sorted(files)))
    found = list(places(files[name]))
    operation = draw(st.sampled_from(OPERATIONS))
    if operation == "again" or not found:
        return {name}
    holder, key = draw(st.sampled_from(found))
    if operation == "delete":
        del holder[key]
    elif operation == "replace":
        holder[key] = draw(values)
    elif operation == "copy":
        other = draw(st.sampled_from(list(places(list(files.values())))))
        holder[key] = copy.deepcopy(other[0][other[1]])
    elif operation == "swap":
        other, there = draw(st.sampled_from(found))
        taken = copy.deepcopy(other[there])
        other[there] = copy.deepcopy(holder[key])
        holder[key] = taken
    elif operation == "item" and isinstance(holder[key], list):
        holder[key].append(
            copy.deepcopy(draw(st.sampled_from(holder[key]))) if holder[key] else None
        )
    elif isinstance(holder, list):
        holder.insert(key, draw(values))
    elif operation == "rename":
        text = str(key)
        holder[draw(st.sampled_from([f"{text}s", text[:-1], text[1:], text.upper()]))] = holder.pop(
            key
        )
    else:
        holder[draw(st.one_of(st.sampled_from(KEYS), st.text(max_size=10)))] = draw(values)
    return set()


class Spoilt(dict[str, str]):
    """Texts of the files of a site, shown by what was changed in them."""

    def __repr__(self) -> str:
        lines: list[str] = []
        for name, text in self.items():
            valid = yaml.safe_load(full_site.FILES[name])
            before = (
                full_site.FILES[name] if name == "hosts.yml" else yaml.safe_dump(valid, **STYLE)
            )
            lines += difflib.unified_diff(
                before.splitlines(), text.splitlines(), name, name, "", "", 2, ""
            )
        return "\n".join(lines)


@st.composite
def spoilt(draw: st.DrawFn) -> Spoilt:
    """Change the files of a site in one to four places."""
    files = copy.deepcopy(full_site.trees())
    if REAL:
        files["hosts.yml"] = yaml.safe_load(full_site.FILES["hosts.yml"])
    twice: set[str] = set()
    for _ in range(draw(st.integers(1, 4))):
        twice |= spoil(files, draw)
    deep = draw(st.sampled_from([2, 40, 70, 2000]))
    texts = Spoilt({"hosts.yml": full_site.FILES["hosts.yml"]})
    for name, tree in files.items():
        text = yaml.safe_dump(tree, **STYLE)
        text = text.replace(DEEP, "[" * deep + "]" * deep)
        if name in twice:
            lines = text.splitlines(keepends=True)
            number = draw(st.integers(0, max(len(lines) - 1, 0)))
            text = "".join([*lines[:number], *lines[number : number + 1] * 2, *lines[number + 1 :]])
        texts[name] = text
    return texts


def check(folder: Path, problem: Problem) -> None:
    """Hold that a problem can be acted on: what it is, and where."""
    assert problem.code in CODES
    assert problem.message
    assert problem.where is not None
    where = problem.where
    assert where.path == folder or where.path.is_relative_to(folder)
    if where.line:
        # A line of YAML may also end in these (YAML 1.2, section 5.4).
        text = where.path.read_text(encoding="utf-8")
        assert where.line <= 1 + sum(text.count(end) for end in "\n\r\x85\u2028\u2029")


@settings(
    max_examples=EXAMPLES,
    deadline=timedelta(seconds=30),
    # To shrink a whole site takes minutes; what was changed is shown anyway.
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.function_scoped_fixture,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
)
@given(texts=spoilt())
def test_a_spoilt_site_is_refused_in_words(texts: Spoilt, monkeypatch: pytest.MonkeyPatch) -> None:
    if not REAL:
        monkeypatch.setattr(load, "read_inventory", full_site.resolve_any)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in texts.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text, encoding="utf-8")
        try:
            found = list(load.load_site(folder).warnings)
        except InvalidSiteError as error:
            found = [*error.problems, *error.warnings]
        except CouldNotRunError:
            return
        for problem in found:
            check(folder, problem)


def test_the_site_that_is_spoilt_is_valid(tmp_path: Path) -> None:
    site = full_site.write(tmp_path / "rich").load()
    assert [warning for warning in site.warnings if not warning.acknowledged] == []


def test_the_site_that_is_spoilt_uses_every_key() -> None:
    used = {key for tree in full_site.trees().values() for key in tree}
    # A lab excludes much of the rest; a host of one has keys of its own.
    without = {key for key in KEYS if "lab" in key or key == "site_address"}
    assert set(KEYS) - used <= without | {"site_subnet_manager_priority"}


def test_stand_in_is_faithful_for_this_site(tmp_path: Path) -> None:
    folder = full_site.write(tmp_path / "rich")
    assert full_site.resolve_any(folder.path) == read_inventory(folder.path)
