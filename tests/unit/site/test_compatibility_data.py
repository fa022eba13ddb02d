"""The matrix itself: every datum has a source, and thresholds rise. The page says what it says."""

from collections.abc import Iterator
from importlib.resources import files
from itertools import pairwise

import pytest
from pydantic import BaseModel, ValidationError

from hpcsite.site.compatibility.load import FILES, load_matrix
from hpcsite.site.compatibility.models import PINS, TITLES, Advisory, Datum, Stack
from hpcsite.site.compatibility.versions import dotted, numbers, read_package
from tests.unit.site.compatibility_tables import PAGE, tables, with_tables

MATRIX = load_matrix()


def _data(model: BaseModel) -> Iterator[Datum]:
    for name in type(model).model_fields:
        value = getattr(model, name)
        for entry in value if isinstance(value, tuple) else ():
            if isinstance(entry, Datum):
                yield entry
            if isinstance(entry, BaseModel):
                yield from _data(entry)


def test_every_datum_has_a_source_and_a_grade() -> None:
    data = list(_data(MATRIX))
    assert len(data) > 25
    for datum in data:
        assert datum.source.strip() == datum.source
        assert len(datum.source) > 10, datum
        assert datum.grade in ("A", "B", "C")


def test_a_datum_without_a_source_is_refused() -> None:
    good = {"cves": ("CVE-2026-65107",), "fixed": ("25.05.9",), "source": "a page", "grade": "A"}
    Advisory.model_validate(good)
    for wrong in ({"source": ""}, {"grade": "D"}, {"unknown": 1}):
        with pytest.raises(ValidationError):
            Advisory.model_validate(good | wrong)


def test_every_file_of_the_matrix_is_read() -> None:
    folder = files("hpcsite.site.compatibility") / "data"
    assert sorted(entry.name for entry in folder.iterdir()) == sorted(FILES)


def test_a_newer_cuda_never_needs_an_older_driver() -> None:
    floors = [(floor.cuda, dotted(floor.driver)) for floor in MATRIX.cuda_floors]
    toolkits = [(dotted(t.cuda), dotted(t.driver)) for t in MATRIX.cuda_toolkits]
    for (cuda, driver), (newer, its_driver) in pairwise(floors):
        assert cuda < newer
        assert driver < its_driver
    for (toolkit, driver), (newer_toolkit, its_driver) in pairwise(toolkits):
        assert toolkit < newer_toolkit
        assert driver < its_driver
    for toolkit, driver in toolkits:
        assert driver >= dict(floors)[toolkit[0]], "a toolkit's own driver runs it"


def test_thresholds_of_slurm_rise_and_name_whole_versions() -> None:
    for advisory in MATRIX.advisories:
        fixed = [dotted(text) for text in advisory.fixed]
        assert fixed == sorted(fixed)
        assert {len(version) for version in fixed} == {3}
        assert len({version[:2] for version in fixed}) == len(fixed)
        assert len(set(advisory.cves)) == len(advisory.cves)
    known = {cve for advisory in MATRIX.advisories for cve in advisory.cves}
    for backport in MATRIX.backports:
        package = read_package(backport.package)
        assert package
        assert package.revision, "a backport is known by its whole version"
        assert known.issuperset(backport.cves)


def test_thresholds_of_pmix_rise() -> None:
    majors = [entry.pmix for entry in MATRIX.slurm_pmix]
    assert majors == sorted(set(majors))
    needed = [dotted(entry.slurm) for entry in MATRIX.slurm_pmix if entry.slurm]
    assert needed == sorted(needed)
    assert all(numbers(entry.pmix) for entry in MATRIX.openmpi_pmix)


def test_pins_are_those_of_a_stack() -> None:
    stack = Stack()
    assert all(stack.pin(name) is None for name in PINS)
    assert set(PINS) == set(TITLES)
    others = {"os", "gpu_models", "nvswitch"}
    assert set(PINS) | others == set(Stack.__dataclass_fields__)
    assert {module.name for module in MATRIX.modules} <= set(PINS)
    assert {name for pair in MATRIX.together for name in pair.modules} <= set(PINS)


def test_tables_of_the_page_are_those_of_the_data() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for text in tables().values():
        assert text in page, "run: python -m tests.unit.site.compatibility_tables"
    assert page == with_tables(page)
