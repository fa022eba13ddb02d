"""Measure hpcsite on a lab of its own and print the figures as JSON.

    make bench            everything, about 8 minutes on 2 cores
    bench/run.py --quick  one run of each

Each figure is the wall time of a whole process, as a user waits for it, and the peak memory of its
largest process. Single times drift with the machine, so what is compared is compared within one
run: `ratios` divides medians of this run.
"""

import argparse
import json
import os
import platform
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HPCSITE = Path(sys.executable).with_name("hpcsite")
LAB = Path(__file__).resolve().parent.parent / "inventory" / "lab"


@dataclass
class Figure:
    """Runs of one command: wall seconds and peak memory in MiB, a value a run."""

    command: str
    wall_s: list[float] = field(default_factory=list)
    peak_mib: list[float] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the runs and their median."""
        return {
            "command": self.command,
            "runs": len(self.wall_s),
            "wall_s": {
                "min": round(min(self.wall_s), 2),
                "median": round(statistics.median(self.wall_s), 2),
                "max": round(max(self.wall_s), 2),
            },
            "peak_memory_mib": round(max(self.peak_mib), 1),
        }


class Bench:
    """The figures, and the lab that they are taken on."""

    def __init__(self, inventory: Path, log: Path, environment: dict[str, str]) -> None:
        self.inventory = inventory
        self.log = log
        self.environment = environment
        self.figures: dict[str, Figure] = {}

    def measure(self, name: str, *arguments: str, **environment: str) -> None:
        """Run `hpcsite ARGUMENTS` once under the figure `name`; a failure ends the bench."""
        wall, peak = self.run(*arguments, **environment)
        figure = self.figures.setdefault(name, Figure(" ".join(("hpcsite", *arguments))))
        figure.wall_s.append(wall)
        figure.peak_mib.append(peak)
        print(f"{name}: {wall:.2f} s, {peak:.0f} MiB", file=sys.stderr)

    def run(self, *arguments: str, **environment: str) -> tuple[float, float]:
        """Run hpcsite; return wall seconds and the largest process's peak memory in MiB."""
        argv = [str(HPCSITE), *arguments]
        if arguments[0] == "lab" or arguments[0] in ("deploy", "verify", "validate"):
            argv.append(str(self.inventory))
        # os.wait4 rather than subprocess: it alone gives the usage of this one child.
        with self.log.open("ab") as log:
            begin = time.monotonic()
            pid = os.posix_spawn(
                argv[0],
                argv,
                {**self.environment, **environment},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, log.fileno(), 1),
                    (os.POSIX_SPAWN_DUP2, log.fileno(), 2),
                ],
            )
            _, status, usage = os.wait4(pid, 0)
            wall = time.monotonic() - begin
        if code := os.waitstatus_to_exitcode(status):
            tail = self.log.read_text(errors="replace").splitlines()[-30:]
            sys.exit("\n".join([*tail, f"bench: {' '.join(argv)} ended with {code}"]))
        return wall, usage.ru_maxrss / 1024

    def ratio(self, over: str, under: str) -> float:
        """Return the median wall time of one figure over that of another."""
        above, below = (statistics.median(self.figures[name].wall_s) for name in (over, under))
        return round(above / below, 2)


@contextmanager
def own_lab() -> Iterator[Bench]:
    """Copy the lab inventory under a name and subnet of its own; remove its lab afterwards."""
    with tempfile.TemporaryDirectory(prefix="hpcsite-bench-") as folder:
        work = Path(folder)
        inventory = work / "bench"
        shutil.copytree(LAB, inventory, ignore=shutil.ignore_patterns(".lab", "secrets"))
        for file in inventory.rglob("*.yml"):
            text = file.read_text().replace("10.213.0.", "10.214.0.")
            file.write_text(re.sub(r"^(site_name:) lab$", r"\1 bench", text, flags=re.MULTILINE))
        environment = {**os.environ, "HPCSITE_STATE_DIR": str(work / "state")}
        bench = Bench(inventory, work / "log", environment)
        try:
            yield bench
        finally:
            bench.run("lab", "down")


def take(bench: Bench, *, repeat: int, cold: bool) -> None:
    """Take every figure; `repeat` runs of the short ones."""
    if cold:
        bench.measure("lab_up_cold", "lab", "up", "--rebuild")
        bench.run("lab", "down")
    else:
        bench.run("lab", "up")
        bench.run("lab", "down")
    for _ in range(repeat):
        bench.measure("lab_up_warm", "lab", "up")
        bench.measure("lab_reset", "lab", "reset")
        bench.run("lab", "down")
    bench.run("lab", "up")
    # The deploy ends with the suite `smoke`: a job that ran and stands in the accounting.
    bench.measure("deploy_bare", "deploy")
    for _ in range(repeat):
        bench.measure("deploy_noop", "deploy")
        bench.measure("deploy_noop_linear", "deploy", HPCSITE_STRATEGY="linear")
        bench.measure("verify", "verify")
        bench.measure("validate", "validate")


def main() -> None:
    """Parse options, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one run of each, image kept")
    parser.add_argument("--repeat", type=int, default=3, help="runs of the short ones")
    options = parser.parse_args()
    with own_lab() as bench:
        take(bench, repeat=1 if options.quick else options.repeat, cold=not options.quick)
        result = {
            "machine": {
                "cpus": os.cpu_count(),
                "python": platform.python_version(),
                "kernel": platform.release(),
            },
            "figures": {name: figure.as_json() for name, figure in bench.figures.items()},
            "ratios": {
                "deploy_noop linear / mitogen": bench.ratio("deploy_noop_linear", "deploy_noop"),
                "deploy bare / no-op": bench.ratio("deploy_bare", "deploy_noop"),
            },
        }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
