"""The registry of codes: well formed, complete, used, documented."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpcsite.errors import Problem
from hpcsite.site.codes import AREAS, CODES, Code, nearest_code, registry_files
from hpcsite.site.yamlfile import items, read_yaml
from tests.unit.site.code_page import PAGE, page

SITE = Path(__file__).resolve().parents[3] / "hpcsite" / "site"
# The model names codes in examples only.
MODULES = sorted(path for path in SITE.rglob("*.py") if "model" not in path.parts)
# Each makes a mistake of a site description, or carries what one is made of.
MAKERS = frozenset(
    {
        *("Problem", "problem", "host_problem", "group_problem"),
        *("Refusal", "UnusableVariableError"),
    }
)
ANY = pytest.mark.parametrize("code", CODES.values(), ids=lambda code: code.number)


def calls(module: Path) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name in MAKERS:
                yield node


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(SITE)))
def test_no_mistake_is_made_without_a_code(module: Path) -> None:
    without = [
        f"{module}:{call.lineno}"
        for call in calls(module)
        if "code" not in {keyword.arg for keyword in call.keywords}
    ]
    assert without == []


def test_the_search_for_makers_finds_them() -> None:
    found = [call for module in MODULES for call in calls(module)]
    assert len(found) > len(CODES) / 2


def test_every_code_is_registered_and_every_registered_one_is_used() -> None:
    used = {
        node.value
        for module in MODULES
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"HPC\d+", node.value)
    }
    assert used - set(CODES) == set(), "register it in hpcsite/site/codes"
    retired = {code.number for code in CODES.values() if code.retired}
    assert set(CODES) - used == retired, "mark it as retired, and keep its number"


@ANY
def test_code_is_well_formed(code: Code) -> None:
    assert re.fullmatch(r"HPC\d{4}", code.number)
    assert code.area in AREAS
    assert code.title == code.title.strip()
    assert len(code.title) <= 80
    assert not code.title.endswith(".")
    for text in (code.cause, code.remedy):
        assert text.strip().endswith((".", ".pub file.")), text
        assert "\n" not in text.strip(), "write it as one paragraph (>-)"
    assert all(len(line) <= 90 for line in code.example.splitlines())


def test_titles_are_distinct() -> None:
    titles = [code.title for code in CODES.values()]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("path", registry_files(), ids=lambda path: path.name)
def test_file_of_the_registry(path: Path) -> None:
    """YAML itself would drop the first of two codes with one number."""
    content = read_yaml(path)
    assert content.problems == []
    assert content.root is not None
    parts = {name: value for name, _, value in items(content.root)}  # type: ignore[arg-type]
    assert list(parts) == ["area", "title", "codes"]
    numbers = [name for name, _, _ in items(parts["codes"])]  # type: ignore[arg-type]
    assert numbers == sorted(numbers)
    assert {number[3:5] for number in numbers} == {parts["area"].value}
    assert path.name.startswith(f"{parts['area'].value}-")


def test_the_page_is_that_of_the_registry() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.unit.site.code_page"


def test_examples_of_the_page_are_no_real_codes() -> None:
    assert "HPC1999" not in CODES


@pytest.mark.parametrize(
    ("text", "meant"),
    [("HPC12O3", "HPC12"), ("hpc1203", "HPC1203"), ("HCP1203", "HPC1203"), ("foo", None)],
)
def test_nearest_code(text: str, meant: str | None) -> None:
    found = nearest_code(text)
    assert found is None if meant is None else found is not None and found.startswith(meant)


def test_problem_shows_its_code() -> None:
    assert str(Problem("bad", hint="do", code="HPC1203")) == "bad [HPC1203]\n\nhint: do"


def test_hosts_of_one_mistake_are_one_problem() -> None:
    assert Problem("bad", code="HPC1203", host="a") == Problem("bad", code="HPC1203", host="b")
