"""All suites. A suite is a list of checks; the engine starts them in this order."""

from collections.abc import Iterable, Sequence

from hpcsite.errors import UsageError
from hpcsite.site.names import did_you_mean
from hpcsite.verify.engine import Check
from hpcsite.verify.suites import (
    accounting,
    fabric,
    gres,
    isolation,
    monitoring,
    mpi,
    node,
    smoke,
    storage,
    submission,
)

SUITES: dict[str, tuple[Check, ...]] = {
    "node": node.CHECKS,
    # The two slow ones stand in front: everything else fits beside or behind them.
    "slurm": (
        *submission.CHECKS[:1],
        *gres.CHECKS,
        *submission.CHECKS[1:],
        *accounting.CHECKS,
    ),
    "isolation": isolation.CHECKS,
    "fabric": fabric.CHECKS,
    "mpi": mpi.CHECKS,
    "storage": storage.CHECKS,
    "monitoring": monitoring.CHECKS,
    "smoke": smoke.CHECKS,
}
DEFAULT_SUITES = ("node", "slurm", "isolation", "fabric", "mpi", "storage", "monitoring")


def choose(suites: Sequence[str], checks: Sequence[str] = ()) -> list[Check]:
    """Return checks of suites (of the default ones, for none), only those of some names if given.

    A check's name is `name` or `suite/name`. Raises `UsageError` for a name that nothing has.
    """
    for suite in suites:
        if suite not in SUITES:
            raise UsageError(f"there is no suite {suite}", hint=nearest(suite, SUITES))
    chosen = [check for suite in dict.fromkeys(suites or DEFAULT_SUITES) for check in SUITES[suite]]
    for wanted in checks:
        if not any(wanted in (check.name, check.title) for check in chosen):
            known = [check.title for check in chosen] + [check.name for check in chosen]
            raise UsageError(f"there is no check {wanted}", hint=nearest(wanted, known))
    if not checks:
        return chosen
    return [check for check in chosen if check.name in checks or check.title in checks]


def nearest(word: str, known: Iterable[str]) -> str:
    """Write a hint: the nearest known word, and where all are listed."""
    listed = "`hpcsite verify --list` shows all suites and checks"
    return " ".join(filter(None, (did_you_mean(word, known, ""), listed)))
