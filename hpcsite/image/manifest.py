"""What lies beside an image and says what is in it."""

import hashlib
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from hpcsite import __version__
from hpcsite.image.kinds import Kind
from hpcsite.image.recipe import Recipe
from hpcsite.site.model import Frozen
from hpcsite.site.names import fold

_CHUNK = 1 << 20


class Package(Frozen):
    """One Debian package of an image."""

    name: str
    version: str
    architecture: str


class Artifact(Frozen):
    """One file of an image."""

    sha256: str
    bytes: int


class Manifest(Frozen):
    """What an image holds."""

    schema_version: Literal[1] = 1
    hpcsite: str
    built: str
    digest: str
    release: str
    architecture: str
    kernel: str
    features: tuple[str, ...]
    hosts: tuple[str, ...]
    artifacts: dict[str, Artifact]
    packages: tuple[Package, ...]


def write(recipe: Recipe, kind: Kind, hosts: Iterable[str], folder: Path, *, built: float) -> None:
    """Write the manifest of the image in a folder; the last file of a build."""
    # The build's own notes are taken before what lies in the folder is listed.
    kernel = _taken(folder / "kernel-release").strip()
    packages = parse_packages(_taken(folder / "packages"))
    found = Manifest(
        hpcsite=__version__,
        built=datetime.fromtimestamp(built, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        digest=kind.digest(recipe),
        release=recipe.release,
        architecture=recipe.architecture,
        kernel=kernel,
        features=kind.features,
        hosts=tuple(hosts),
        artifacts={
            path.name: artifact(path) for path in sorted(folder.iterdir()) if path.is_file()
        },
        packages=packages,
    )
    (folder / "manifest.json").write_text(found.model_dump_json(indent=2) + "\n", encoding="utf-8")


def read(path: Path) -> Manifest:
    """Read a manifest."""
    return Manifest.model_validate(json.loads(path.read_text(encoding="utf-8")))


def parse_packages(text: str) -> tuple[Package, ...]:
    """Read lines of name, version and architecture."""
    return tuple(
        Package(name=fields[0], version=fields[1], architecture=fields[2])
        for fields in (line.split() for line in text.splitlines())
        if len(fields) == 3
    )


def artifact(path: Path) -> Artifact:
    """Return a file's size and checksum."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return Artifact(sha256=digest.hexdigest(), bytes=path.stat().st_size)


def names(hosts: Iterable[str]) -> str:
    """Return host names as Slurm writes them."""
    return fold(set(hosts))


def _taken(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    path.unlink()
    return text
