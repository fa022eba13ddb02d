"""Reading the matrix from its files."""

from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from hpcsite.site.compatibility.models import Matrix

FILES = ("slurm.yml", "nvidia.yml", "modules.yml", "mpi.yml")


@cache
def load_matrix() -> Matrix:
    """Load the matrix that hpcsite carries."""
    folder = files("hpcsite.site.compatibility") / "data"
    tables: dict[str, Any] = {}
    for name in FILES:
        tables |= yaml.safe_load((folder / name).read_text(encoding="utf-8"))
    return Matrix.model_validate(tables)
