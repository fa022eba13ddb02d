"""Dependencies between the parts of hpcsite point one way."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "hpcsite"
MODULES = sorted(PACKAGE.rglob("*.py"))

# Part → the other parts that it may import. `cli` alone may import everything.
ALLOWED = {
    "": set(),
    "errors": set(),
    "paths": set(),
    "site": {"errors", "paths"},
    "slurm": {"errors", "paths", "site"},
    "deploy": {"errors", "paths", "site", "slurm"},
    # The roles' install stage is run by Ansible, so images stand on deploy's runner.
    "image": {"errors", "paths", "site", "slurm", "deploy"},
    "lab": {"errors", "paths", "site", "slurm", "image"},
    "verify": {"errors", "paths", "site", "slurm"},
    # It asks hosts of which no site is written yet: site knows ssh and the catalogue.
    "discover": {"errors", "paths", "site"},
    # Renderers of a stored run: they know the run's schema, and nothing that makes a run.
    "report": {"errors", "paths", "verify"},
}
# Facts about Slurm, which the rules for a site need and which know nothing of sites.
FACTS = frozenset({"slurm.keys", "slurm.tres", "slurm.values", "slurm.versions"})
# Third-party module → the one part that may import it; None: nobody.
ONLY = {"ansible_runner": "deploy", "ansible": None, "ansible_mitogen": None}


def _part(module: Path) -> str:
    relative = module.relative_to(PACKAGE)
    first = relative.parts[0]
    return "" if first == "__init__.py" else first.removesuffix(".py")


def _imports(module: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of every import, also of those inside of functions."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno}: relative import"
            assert node.module is not None
            # `from hpcsite import x` names the part only after the import.
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from ((node.lineno, name) for name in names)


def _wrong(module: Path) -> Iterator[str]:
    part = _part(module)
    for line, name in _imports(module):
        top, *rest = name.split(".")
        if top in ONLY and ONLY[top] != part:
            yield f"{module}:{line}: {top} may be imported by {ONLY[top] or 'nobody'} only"
        if top == "hpcsite" and part != "cli":
            target = rest[0] if rest else ""
            if part == "site" and ".".join(rest[:2]) in FACTS:
                continue
            if target != part and not target.startswith("__") and target not in ALLOWED[part]:
                yield f"{module}:{line}: {part or 'hpcsite'} imports {target}"


@pytest.mark.parametrize("module", MODULES, ids=lambda m: str(m.relative_to(PACKAGE)))
def test_dependencies_point_one_way(module: Path) -> None:
    assert list(_wrong(module)) == []


@pytest.mark.parametrize("fact", sorted(FACTS))
def test_facts_about_slurm_know_no_site(fact: str) -> None:
    module = PACKAGE / f"{fact.replace('.', '/')}.py"
    own = {".".join(name.split(".")[1:3]) for _, name in _imports(module) if "hpcsite" in name}
    assert own <= FACTS


def test_only_the_schema_of_a_run_is_imported_by_reports() -> None:
    names = {
        name
        for module in MODULES
        if _part(module) == "report"
        for _, name in _imports(module)
        if name.startswith("hpcsite.verify.")
    }
    assert names
    assert {name.rpartition(".")[0] for name in names} == {"hpcsite.verify.results"}


@pytest.mark.parametrize("module", MODULES, ids=lambda m: str(m.relative_to(PACKAGE)))
def test_module_can_be_read_in_one_sitting(module: Path) -> None:
    assert len(module.read_text(encoding="utf-8").splitlines()) <= 300
