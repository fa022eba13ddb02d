"""Plans in files: written with `--out`, read again by `deploy --plan`."""

import os
import shlex
import tempfile
from pathlib import Path

from pydantic import ValidationError

from hpcsite.deploy.plan.fingerprint import moved
from hpcsite.deploy.plan.model import Plan
from hpcsite.errors import CouldNotRunError, FailedError, UsageError
from hpcsite.site.model import Site
from hpcsite.site.names import fold


def check_writable(path: Path) -> None:
    """Raise `UsageError` before any work is done for a file that cannot be written."""
    folder = path.absolute().parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise UsageError(
            f"--out {path}: no file can be written there",
            hint="name a file in a folder that exists and that you may write to",
        )


def write_plan(plan: Plan, path: Path) -> None:
    """Store a plan in one step; only its owner may read it. Raises `CouldNotRunError`."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(plan.model_dump_json(indent=2) + "\n")
        Path(temporary).replace(path)
    except OSError as error:
        raise CouldNotRunError(f"cannot write the plan {path}: {error.strerror}") from error


def read_plan(path: Path, site: Site) -> Plan:
    """Read a stored plan of a site. Raises `UsageError` for what is none, or another site's."""
    again = f"hpcsite plan {site.path} --out {path}"
    try:
        plan = Plan.model_validate_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(
            f"--plan {path}: {error.strerror or error}", hint=f"make a plan first: {again}"
        ) from error
    except (ValidationError, ValueError) as error:
        raise UsageError(
            f"--plan {path}: this is no plan of this version of hpcsite",
            hint=f"make it anew: {again}",
        ) from error
    if plan.site != site.name:
        raise UsageError(
            f"--plan {path}: this is a plan of the site {plan.site}, not of {site.name}",
            hint=f"make one of this site: {again}",
        )
    return plan


def require_unmoved(stored: Plan, now: Plan, path: Path) -> None:
    """Raise `FailedError`, which says what moved, when a stored plan does not hold any more."""
    said = moved(stored, now)
    if now.status != "ok":
        out = fold(host for failure in now.failures for host in failure.hosts)
        said.insert(0, now.reason or f"nothing is known of {out}")
    if said:
        words = map(shlex.quote, ("hpcsite", "plan", str(now.inventory), "--out", str(path)))
        raise FailedError(
            "\n  ".join([f"the plan {path} does not hold any more; nothing was deployed:", *said]),
            hint=f"look at what would change now, and store it: {' '.join(words)}",
        )
