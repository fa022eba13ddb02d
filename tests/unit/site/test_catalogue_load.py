"""A site's own hardware files: overrides, bases, sources, and mistakes with their lines."""

from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpcsite.errors import InvalidSiteError, Problem
from hpcsite.site.catalogue import load, load_catalogue, references, slurm_hardware, unknown
from hpcsite.site.catalogue.load import read_catalogue


def _write(site: Path, text: str, name: str = "ours.yml") -> Path:
    path = site / "hardware" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _problems(site: Path, text: str) -> list[Problem]:
    path = _write(site, text)
    with pytest.raises(InvalidSiteError) as raised:
        load_catalogue(site)
    assert {problem.where.path for problem in raised.value.problems if problem.where} == {path}
    return raised.value.problems


def test_a_site_without_hardware_files_has_the_catalogue(tmp_path: Path) -> None:
    assert load_catalogue(tmp_path) == load_catalogue()
    (tmp_path / "hardware").mkdir()
    (tmp_path / "hardware" / "notes.txt").write_text("nodes: [", encoding="utf-8")
    (tmp_path / "hardware" / ".hidden.yml").write_text("nodes: [", encoding="utf-8")
    assert load_catalogue(tmp_path) == load_catalogue()


def test_an_override_gives_only_what_differs(tmp_path: Path) -> None:
    _write(
        tmp_path,
        "nodes:\n  dgx-h100:\n    base: dgx-h100\n    sockets: 2\n"
        "    memory_mib: {value: 2000000, source: slurmd -C on gpu001}\n"
        "    psu:\n      needed_full: {value: 5, source: ours, note: tried}\n"
        "    heat_btu_h: null\n",
    )
    own, profile = load_catalogue().nodes["dgx-h100"], load_catalogue(tmp_path).nodes["dgx-h100"]
    assert slurm_hardware(profile) == (2, None, None, 2_000_000)
    assert profile.sockets is not None
    assert profile.memory_mib is not None
    assert profile.sockets.source.title == "hardware/ours.yml, line 4"
    assert profile.memory_mib.source.title == "slurmd -C on gpu001"
    assert profile.psu.needed_full is not None
    assert (profile.psu.needed_full.value, profile.psu.count) == (5, own.psu.count)
    assert "heat_btu_h" in unknown(profile)
    assert (profile.gpu, profile.weight_kg, profile.nics) == (own.gpu, own.weight_kg, own.nics)
    assert own.sockets is None


def test_a_profile_of_the_site_stands_on_another_of_the_site(tmp_path: Path) -> None:
    _write(tmp_path, "nodes:\n  b:\n    base: a\n    title: B\n    rack_units: 3\n", "1.yml")
    _write(tmp_path, "nodes:\n  a:\n    base: generic-4xl40s\n    rack_units: 2\n", "2.yml")
    nodes = load_catalogue(tmp_path).nodes
    assert nodes["b"].rack_units is not None
    assert (nodes["b"].title, nodes["b"].rack_units.value) == ("B", 3)
    assert nodes["b"].gpu == nodes["a"].gpu == load_catalogue().gpus["l40s"]
    assert len(nodes) == len(load_catalogue().nodes) + 2


def test_an_entry_without_base_replaces_the_whole(tmp_path: Path) -> None:
    _write(tmp_path, "nodes:\n  dgx-h100:\n    title: another\n")
    profile = load_catalogue(tmp_path).nodes["dgx-h100"]
    assert (profile.title, profile.gpu, profile.rack_units) == ("another", None, None)


def test_a_gpu_of_the_site_is_in_every_node_that_has_it(tmp_path: Path) -> None:
    _write(tmp_path, "gpus:\n  b200:\n    base: b200\n    tdp_w: 800\n")
    catalogue = load_catalogue(tmp_path)
    gpu = catalogue.nodes["dgx-b200"].gpu
    assert gpu is not None
    assert gpu.tdp_w is not None
    assert gpu.tdp_w.value == 800
    assert catalogue.nodes["dgx-h100"] == load_catalogue().nodes["dgx-h100"]


def test_a_site_has_sources_and_references_of_its_own(tmp_path: Path) -> None:
    _write(
        tmp_path,
        "sources:\n  burn-in: {title: acceptance of 2026, url: 'https://wiki.example/burn-in'}\n"
        "nodes:\n  ours:\n    base: dgx-b200\n    references:\n"
        "      - {metric: nccl_all_reduce_busbw, value: 800, unit: GB/s, kind: gate,\n"
        "         applies: our nodes, gpus: 8, algorithm: nvls, source: burn-in}\n",
    )
    found = references(load_catalogue(tmp_path).nodes["ours"])[-1]
    assert (found.value, found.source.title) == (800, "acceptance of 2026")
    assert found.source.url == "https://wiki.example/burn-in"


MISTAKES = (
    ("section", "node:\n  a: {title: A}\n", 1, "unknown section node", "nodes", "HPC1720"),
    ("list", "- a\n", 1, "a mapping of sections", "catalogue.md", "HPC1720"),
    ("section list", "nodes: [a]\n", 1, "nodes is a mapping", "catalogue.md", "HPC1720"),
    ("entry", "nodes:\n  a: 1\n", 2, "nodes.a is a mapping", "catalogue.md", "HPC1720"),
    ("name", "nodes:\n  A b: {title: A}\n", 2, "lower-case letters", "rename", "HPC1721"),
    ("title", "nodes:\n  a:\n    sockets: 2\n", 2, "nodes.a.title: Field", "catalogue", "HPC1721"),
    (
        *("field", "nodes:\n  a:\n    title: A\n    socket: 2\n", 4),
        *("nodes.a.socket: unknown field", "did you mean sockets?", "HPC1721"),
    ),
    (
        *("nested field", "nodes:\n  a:\n    title: A\n    psu:\n      counts: 2\n", 5),
        *("nodes.a.psu.counts: unknown field", "catalogue.md", "HPC1721"),
    ),
    (
        *("text", "nodes:\n  a:\n    title: A\n    sockets: two\n", 4),
        *("nodes.a.sockets.value: Input should be a valid integer", "catalogue.md", "HPC1721"),
    ),
    (
        *("true", "nodes:\n  a:\n    title: A\n    sockets: true\n", 4),
        *("nodes.a.sockets.value", "catalogue.md", "HPC1721"),
    ),
    (
        *("below zero", "nodes:\n  a:\n    title: A\n    depth_mm:\n      value: -1\n", 5),
        *("nodes.a.depth_mm.value", "catalogue.md", "HPC1721"),
    ),
    (
        *("infinite", "nodes:\n  a:\n    title: A\n    depth_mm: .inf\n", 4),
        *("nodes.a.depth_mm.value", "catalogue.md", "HPC1721"),
    ),
    (
        *("gpu", "nodes:\n  a:\n    title: A\n    gpu: h100-sxm\n", 4),
        *("no gpu h100-sxm in", "did you mean h100-sxm-80?", "HPC1722"),
    ),
    (
        *("nic", "nodes:\n  a:\n    title: A\n    nics:\n      - nic: ndr400\n", 5),
        *("no nic ndr400 in", "ndr-400", "HPC1722"),
    ),
    (
        "base",
        "nodes:\n  a:\n    base: dgx-h10\n",
        3,
        "no base dgx-h10",
        "mean dgx-h100?",
        "HPC1722",
    ),
    ("own base", "nodes:\n  a:\n    base: a\n", 3, "no base a", "known are", "HPC1722"),
    (
        *("unit", "nics:\n  a:\n    title: A\n    speed_gbit_s: 100\n    references:\n", 6),
        *("ib_write_bw is given in Gb/s, not GB/s", "catalogue.md", "HPC1721"),
    ),
    (
        *("limit", "nics:\n  a:\n    title: A\n    speed_gbit_s: 100\n    references:\n", 6),
        *("is not below the limit of 100", "check the figure", "HPC1725"),
    ),
)
REFERENCE = "      - {{metric: ib_write_bw, value: {}, unit: {}, kind: gate, applies: us}}\n"


@pytest.mark.parametrize("case", MISTAKES, ids=lambda case: str(case[0]).replace(" ", "-"))
def test_mistakes_have_their_line_and_code(
    tmp_path: Path, case: tuple[str, str, int, str, str, str]
) -> None:
    name, text, line, says, hint, code = case
    text += {"unit": REFERENCE.format(12, "GB/s"), "limit": REFERENCE.format(120, "Gb/s")}.get(
        name, ""
    )
    (problem,) = _problems(tmp_path, text)
    assert problem.where is not None
    assert says in problem.message
    assert hint in problem.hint
    assert (problem.where.line, problem.code) == (line, code)


def test_a_circle_of_bases(tmp_path: Path) -> None:
    problems = _problems(tmp_path, "nodes:\n  a: {base: b}\n  b: {base: a}\n")
    assert {problem.code for problem in problems} == {"HPC1723"}
    assert "a → b → a" in problems[0].message + problems[-1].message


def test_the_same_entry_in_two_files(tmp_path: Path) -> None:
    first = _write(tmp_path, "nodes:\n  a: {title: A}\n", "1.yml")
    second = _write(tmp_path, "nodes:\n  a: {title: A}\n", "2.yml")
    catalogue, (problem,) = read_catalogue(tmp_path)
    assert problem.where is not None
    assert problem.where.path == second
    assert f"it is in {first}:2 already" in problem.message
    assert catalogue.nodes["a"].title == "A"


def test_all_mistakes_come_at_once_and_what_is_valid_remains(tmp_path: Path) -> None:
    _write(tmp_path, "nodes:\n  a:\n\t- b\n", "1.yml")
    _write(tmp_path, "$ANSIBLE_VAULT;1.1;AES256\n00\n", "2.yml")
    _write(
        tmp_path,
        "nodes:\n  b: {title: B, x: 1}\n  c: {base: b}\n  d: {title: D}\n  e: {gpu: x, title: E}\n",
        "3.yml",
    )
    catalogue, problems = read_catalogue(tmp_path)
    places = [(p.where.path.name, p.where.line) for p in problems if p.where]
    # What c has of b is said once.
    assert places == [("1.yml", 3), ("2.yml", 0), ("3.yml", 2), ("3.yml", 5)]
    assert "d" in catalogue.nodes
    assert catalogue.nodes.keys() & {"a", "b", "c", "e"} == set()


def test_a_broken_gpu_is_said_once_and_not_of_its_nodes(tmp_path: Path) -> None:
    text = "gpus:\n  g: {title: G}\nnodes:\n  a: {title: A, gpu: g}\n"
    problems = _problems(tmp_path, text)
    assert {problem.message.split(":")[0] for problem in problems} == {
        "gpus.g.gres_type",
        "gpus.g.words",
    }


def test_what_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hardware" / "folder.yml").mkdir(parents=True)
    catalogue, (problem,) = read_catalogue(tmp_path)
    assert "cannot be read: Is a directory" in problem.message
    assert catalogue == load_catalogue()

    def refuse(_path: Path) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "iterdir", refuse)
    catalogue, (problem,) = read_catalogue(tmp_path)
    assert "cannot be read" in problem.message
    assert catalogue == load_catalogue()


_KEYS = st.sampled_from(
    [
        *("nodes", "gpus", "nics", "switches", "sources", "a", "dgx-h100", "base", "title", "psu"),
        *("sockets", "value", "source", "references", "gpu", "nics", "nic", "mig", "profiles"),
    ]
)
_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | _KEYS,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(_KEYS, below, max_size=5),
    max_leaves=25,
)
_ENTRIES = st.dictionaries(
    st.sampled_from(["nodes", "gpus", "nics", "switches", "sources"]),
    st.dictionaries(_KEYS, st.dictionaries(_KEYS, _ANYTHING, max_size=6), max_size=3),
    max_size=4,
)


@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(content=_ENTRIES | _ANYTHING)
def test_no_file_ends_in_a_traceback(tmp_path: Path, content: object) -> None:
    _write(tmp_path, yaml.safe_dump(content))
    catalogue, problems = read_catalogue(tmp_path)
    assert "dgx-b200" in catalogue.nodes
    assert all(problem.where for problem in problems)


def test_an_own_figure_without_source_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "sources:\n  s: {title: S}\nnodes:\n  a: {title: A, sockets: 2}\n"
        "  b: {title: B, sockets: {value: 2}}\n  c: {title: C, sockets: {value: 2, source: t}}\n"
        "  d: {title: D, sockets: {value: 2, source: s}}\n"
    )
    (tmp_path / "own.yml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(load, "DATA", tmp_path)
    load._own.cache_clear()
    try:
        catalogue, problems = read_catalogue()
    finally:
        load._own.cache_clear()
    assert [(p.code, p.where and p.where.line) for p in problems] == [
        *(("HPC1724", 4), ("HPC1724", 5), ("HPC1724", 6))
    ]
    assert list(catalogue.nodes) == ["d"]
