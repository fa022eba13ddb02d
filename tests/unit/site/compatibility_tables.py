"""The tables of docs/compatibility.md, made from the matrix and from the table of Slurm's keys.

`python -m tests.unit.site.compatibility_tables` writes them into the page; a test holds the page to
them.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from hpcsite.site.compatibility.checks import CHECKS
from hpcsite.site.compatibility.load import load_matrix
from hpcsite.site.compatibility.models import TITLES, Datum
from hpcsite.slurm.keys import Key, all_keys, table_releases

PAGE = Path(__file__).resolve().parents[3] / "docs" / "compatibility.md"


def tables() -> dict[str, str]:
    """Text between the markers `<!-- NAME -->` and `<!-- end of NAME -->`, by name."""
    return {
        "checks": "\n".join(_checks()),
        "slurm": "\n".join(_slurm()),
        "nvidia": "\n".join(_nvidia()),
        "modules": "\n".join(_modules()),
        "mpi": "\n".join(_mpi()),
        "keys": "\n".join(_keys()),
    }


def with_tables(page: str) -> str:
    """Put the tables into a page."""
    for name, text in tables().items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        head, _, rest = page.partition(begin)
        page = f"{head}{begin}{text}\n{end}{rest.partition(end)[2]}"
    return page


def _checks() -> Iterator[str]:
    yield from _head("rule", "what it does")
    for check in CHECKS:
        yield _row(f"`{check.__name__}`", str(check.__doc__).rstrip("."))


def _slurm() -> Iterator[str]:
    matrix = load_matrix()
    yield from _head("holes", "first versions without them", "source", "grade")
    for advisory in matrix.advisories:
        yield _row(", ".join(advisory.cves), ", ".join(advisory.fixed), *_source(advisory))
    yield ""
    yield from _head("distribution", "package that carries the fixes", "holes", "source", "grade")
    for backport in matrix.backports:
        system = f"{backport.distribution} {backport.version}"
        yield _row(system, f"`{backport.package}`", ", ".join(backport.cves), *_source(backport))
    yield ""
    yield from _head("distribution", "Slurm that it installs", "PMIx plugin", "source", "grade")
    for offered in matrix.offered:
        system = f"{offered.distribution} {offered.version}"
        pmix = "unknown" if offered.pmix is None else f"PMIx {offered.pmix}"
        yield _row(system, f"`{offered.package}`", pmix, *_source(offered))


def _nvidia() -> Iterator[str]:
    matrix = load_matrix()
    yield from _head("CUDA", "driver, at least", "serves", "source", "grade")
    for floor in matrix.cuda_floors:
        yield _row(f"{floor.cuda}.x", floor.driver, "programs run at all", *_source(floor))
    for toolkit in matrix.cuda_toolkits:
        yield _row(toolkit.cuda, toolkit.driver, "all of the toolkit", *_source(toolkit))
    yield ""
    yield from _head("driver from", "CUDA from", "DCGM, at least", "source", "grade")
    for dcgm in matrix.dcgm_floors:
        yield _row(str(dcgm.driver), str(dcgm.cuda), str(dcgm.dcgm), *_source(dcgm))
    yield ""
    yield from _head("Fabric Manager", "source", "grade")
    for note in matrix.fabric_manager:
        yield _row(note.text, *_source(note))


def _modules() -> Iterator[str]:
    matrix = load_matrix()
    yield from _head("module", "kernels that it is known to go with", "reports")
    for module in matrix.modules:
        reports = "; ".join(f"{report.text} ({report.source})" for report in module.reports)
        known = "; ".join(f"{k.version}: {', '.join(k.kernels)} ({k.source})" for k in module.known)
        yield _row(
            TITLES[module.name], known or ("unknown" if module.judged else "not judged"), reports
        )
    yield ""
    yield from _head("modules", "why they must match", "source", "grade")
    for pair in matrix.together:
        names = " and ".join(TITLES[name] for name in pair.modules)
        yield _row(names, pair.text, *_source(pair))


def _mpi() -> Iterator[str]:
    matrix = load_matrix()
    yield from _head("PMIx", "Slurm, at least", "source", "grade")
    for entry in matrix.slurm_pmix:
        yield _row(str(entry.pmix), entry.slurm or "any of the matrix", *_source(entry))
    yield ""
    yield from _head("Open MPI", "PMIx, at least", "source", "grade")
    for mpi in matrix.openmpi_pmix:
        yield _row(str(mpi.openmpi), mpi.pmix, *_source(mpi))


def _keys() -> Iterator[str]:
    releases = table_releases()
    yield from _head("file", "section", "key", "known since", "defunct since", "gone since")
    for key in all_keys():
        if key.known_in != releases or key.defunct_in:
            yield _row(key.file, key.section, f"`{key.name}`", *_life(key, releases))


def _life(key: Key, releases: tuple[str, ...]) -> Iterator[str]:
    earlier = f"{releases[0]} or earlier"
    first, last = key.known_in[0], key.known_in[-1]
    yield earlier if first == releases[0] else first
    defunct = key.defunct_in[0] if key.defunct_in else ""
    yield earlier if defunct == releases[0] else defunct
    yield "" if last == releases[-1] else releases[releases.index(last) + 1]


def _source(datum: Datum) -> Iterable[str]:
    return datum.source, datum.grade


def _head(*titles: str) -> Iterator[str]:
    yield _row(*titles)
    yield f"|{'---|' * len(titles)}"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
