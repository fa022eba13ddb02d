"""Runs of hpcsite, and what they took."""

import json
import os
import statistics
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HPCSITE = Path(sys.executable).with_name("hpcsite")


@dataclass
class Figure:
    """Runs of one command: wall seconds and peak memory in MiB, a value a run."""

    command: str
    wall_s: list[float] = field(default_factory=list)
    peak_mib: list[float] = field(default_factory=list)

    @property
    def median_s(self) -> float:
        """Median of the wall seconds."""
        return statistics.median(self.wall_s)

    def as_json(self) -> dict[str, Any]:
        """Return the runs and their median."""
        return {
            "command": self.command,
            "runs": len(self.wall_s),
            "wall_s": {
                "min": round(min(self.wall_s), 2),
                "median": round(self.median_s, 2),
                "max": round(max(self.wall_s), 2),
            },
            "peak_memory_mib": round(max(self.peak_mib), 1),
        }


class Bench:
    """The figures of one lab, under `PREFIX_name`, and the lab that they are taken on."""

    def __init__(
        self, prefix: str, inventory: Path, work: Path, figures: dict[str, Figure]
    ) -> None:
        self._prefix = prefix
        self._inventory = inventory
        self._log = work / "log"
        self._state = work / "state"
        self._figures = figures

    def measure(self, name: str, *arguments: str, **environment: str) -> None:
        """Run `hpcsite ARGUMENTS INVENTORY` once under the figure `name`; a failure ends it."""
        wall, peak = self.run(*arguments, **environment)
        name = f"{self._prefix}_{name}"
        figure = self._figures.setdefault(name, Figure(" ".join(("hpcsite", *arguments))))
        figure.wall_s.append(wall)
        figure.peak_mib.append(peak)
        print(f"{name}: {wall:.2f} s, {peak:.0f} MiB", file=sys.stderr)

    def run(self, *arguments: str, **environment: str) -> tuple[float, float]:
        """Run hpcsite; return wall seconds and the largest process's peak memory in MiB."""
        argv = [str(HPCSITE), *arguments, str(self._inventory)]
        # os.wait4 rather than subprocess: it alone gives the usage of this one child.
        with self._log.open("ab") as log:
            begin = time.monotonic()
            pid = os.posix_spawn(
                argv[0],
                argv,
                {**os.environ, "HPCSITE_STATE_DIR": str(self._state), **environment},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, log.fileno(), 1),
                    (os.POSIX_SPAWN_DUP2, log.fileno(), 2),
                ],
            )
            _, status, usage = os.wait4(pid, 0)
            wall = time.monotonic() - begin
        if code := os.waitstatus_to_exitcode(status):
            tail = self._log.read_text(errors="replace").splitlines()[-30:]
            sys.exit("\n".join([*tail, f"bench: {' '.join(argv)} ended with {code}"]))
        return wall, usage.ru_maxrss / 1024

    def suites(self) -> dict[str, float]:
        """Seconds that each suite's checks took in the last verification, one after the other."""
        runs = sorted(self._state.glob("sites/*/verify/*/run.json"))
        seconds: dict[str, float] = {}
        for result in json.loads(runs[-1].read_text("utf-8"))["results"]:
            seconds[result["suite"]] = seconds.get(result["suite"], 0) + result["seconds"]
        return {suite: round(value, 1) for suite, value in seconds.items()}


def ratios(figures: dict[str, Figure], pairs: dict[str, tuple[str, str]]) -> dict[str, float]:
    """Divide medians; a ratio of what was not measured is left out."""
    return {
        name: round(figures[over].median_s / figures[under].median_s, 2)
        for name, (over, under) in pairs.items()
        if over in figures and under in figures
    }


def targets(figures: dict[str, Figure], most_s: dict[str, float]) -> dict[str, dict[str, Any]]:
    """Hold medians against the longest that they may be."""
    return {
        name: {
            "most_s": most,
            "median_s": round(figures[name].median_s, 1),
            "met": figures[name].median_s <= most,
        }
        for name, most in most_s.items()
        if name in figures
    }
