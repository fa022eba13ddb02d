"""Read the catalogue: hpcsite's own files, and over them those of a site."""

from functools import cache
from pathlib import Path

from hpcsite.errors import InvalidSiteError, Location, Problem
from hpcsite.site.catalogue.models import Catalogue, Source
from hpcsite.site.catalogue.reader import Reader

DATA = Path(__file__).parent / "data"
FOLDER = "hardware"


def load_catalogue(site_folder: Path | None = None) -> Catalogue:
    """Read the catalogue of a site; raises `InvalidSiteError` with all that is wrong with it."""
    catalogue, problems = read_catalogue(site_folder)
    if problems:
        raise InvalidSiteError(problems)
    return catalogue


def read_catalogue(site_folder: Path | None = None) -> tuple[Catalogue, list[Problem]]:
    """Read what is valid of the catalogue, and say what is not."""
    files = hardware_files(site_folder) if site_folder else ()
    if not files:
        own = _own()
        return own.catalogue(), list(own.problems)
    reader = Reader(_own())
    for path in files:
        reader.read(path, site=True)
    return reader.catalogue(), sorted(
        reader.problems, key=lambda problem: (problem.where or Location(Path()), problem.message)
    )


def hardware_files(site_folder: Path) -> tuple[Path, ...]:
    """List the hardware files of a site's inventory folder."""
    folder = site_folder / FOLDER
    try:
        found = sorted(folder.iterdir()) if folder.is_dir() else []
    except OSError:
        # Said when it is read: as a file it cannot be read either.
        found = [folder]
    return tuple(
        path
        for path in found
        if path == folder or (path.suffix in {".yml", ".yaml"} and not path.name.startswith("."))
    )


@cache
def _own() -> "Reader":
    reader = Reader(None)
    for path in sorted(DATA.glob("*.yml")):
        reader.read(path, site=False)
    reader.catalogue()
    return reader


def named_sources() -> dict[str, Source]:
    """Give the sources that hpcsite's own files name."""
    return {name: Source.model_validate(raw.plain()) for name, raw in _own().raw("sources").items()}
