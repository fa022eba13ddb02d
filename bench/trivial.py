"""Run many trivial checks of a site as `hpcsite verify` would: a job of its own that does nothing.

python -m bench.trivial INVENTORY COUNT
"""

import sys
from pathlib import Path

from hpcsite.site.load import load_site
from hpcsite.verify import jobs, suites
from hpcsite.verify.context import Context
from hpcsite.verify.engine import Check
from hpcsite.verify.findings import Finding, Tally
from hpcsite.verify.runner import run_suites

SUITE = "bench"


def find(context: Context) -> Finding:
    """Submit a job, wait for it, and look how it ended."""
    target = context.cluster.targets[0]
    (job,) = jobs.submit(context, target, "true")
    ended = jobs.wait_ended(context, [job], target)
    tally = Tally()
    if ended[job].state != "COMPLETED":
        tally.wrong.append(f"job {job} ended as {ended[job].state}")
    return tally.finding([target.name])


def main() -> None:
    """Run them; how many passed, and an exit code of 1 if not all did."""
    path, count = Path(sys.argv[1]), int(sys.argv[2])
    suites.SUITES[SUITE] = tuple(
        Check(SUITE, f"trivial{number}", "A job runs.", find) for number in range(count)
    )
    run = run_suites(load_site(path), [SUITE])
    print(f"{run.summary.passed} of {count} passed")
    sys.exit(run.summary.passed != count)


if __name__ == "__main__":
    main()
