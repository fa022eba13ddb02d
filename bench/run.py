"""Measure hpcsite on labs of its own and print the figures as JSON.

    make bench                    the lab of containers, about 8 minutes on 2 cores; needs root
    make bench-vm                 the lab of virtual machines; up to an hour where it is emulated
    bench/run.py nspawn vm        both, and how they compare
    bench/run.py --quick nspawn   one run of each

Each figure is the wall time of a whole process, as a user waits for it, and the peak memory of its
largest process. Single times drift with the machine, so what is compared is compared within one
run: `ratios` divides medians of this run. `targets` are for 2 cores without KVM and a warm package
cache.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.figures import Bench, Figure, ratios, targets
from tests.labs import copy_lab

# Seconds that the VM lab may take at most under emulation on 2 cores.
TARGETS: dict[str, float] = {
    "vm_image_build": 240,
    "vm_lab_up": 120,
    "vm_deploy": 600,
    "vm_deploy_noop": 240,
    "vm_verify": 480,
}
RATIOS = {
    "nspawn: no-op, linear / mitogen": ("nspawn_deploy_noop_linear", "nspawn_deploy_noop"),
    "nspawn: deploy bare / no-op": ("nspawn_deploy_bare", "nspawn_deploy_noop"),
    "vm: no-op, linear / mitogen": ("vm_deploy_noop_linear", "vm_deploy_noop"),
    "vm: deploy / no-op": ("vm_deploy", "vm_deploy_noop"),
    # In the virtual machines all packages are there, and there are three instead of four.
    "deploy, vm / nspawn": ("vm_deploy", "nspawn_deploy_bare"),
    "no-op, vm / nspawn": ("vm_deploy_noop", "nspawn_deploy_noop"),
}


@contextmanager
def own_lab(prefix: str, figures: dict[str, Figure]) -> Iterator[Bench]:
    """Copy a lab under a name and addresses of its own; remove its machines afterwards."""
    with tempfile.TemporaryDirectory(prefix="hpcsite-bench-") as folder:
        work = Path(folder)
        inventory = work / f"bench{prefix}"
        source, network = {"nspawn": ("lab", "10.215.0"), "vm": ("vmlab", "10.216.0")}[prefix]
        copy_lab(source, inventory, name=inventory.name, network=network, port_offset=2000)
        bench = Bench(prefix, inventory, work, figures)
        try:
            yield bench
        finally:
            bench.run("lab", "down")


def take_nspawn(bench: Bench, *, repeat: int, cold: bool) -> None:
    """Take every figure of the containers; `repeat` runs of the short ones."""
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


def take_vm(bench: Bench, *, repeat: int, cold: bool) -> None:
    """Take every figure of the virtual machines."""
    bench.run("image", "build")
    if cold:
        # Once more: the first one has filled the package cache.
        bench.measure("image_build", "image", "build", "--rebuild")
    bench.measure("lab_up", "lab", "up")
    bench.measure("deploy", "deploy")
    for _ in range(repeat):
        bench.measure("deploy_noop", "deploy", "--no-verify")
        bench.measure("verify", "verify")
    bench.measure("deploy_noop_linear", "deploy", "--no-verify", HPCSITE_STRATEGY="linear")


def main() -> None:
    """Parse options, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("labs", nargs="+", choices=["nspawn", "vm"], metavar="nspawn|vm")
    parser.add_argument("--quick", action="store_true", help="one run of each, images kept")
    parser.add_argument("--repeat", type=int, default=3, help="runs of the short ones")
    options = parser.parse_args()
    repeat = 1 if options.quick else options.repeat
    figures: dict[str, Figure] = {}
    suites = {}
    for lab in options.labs:
        with own_lab(lab, figures) as bench:
            take = take_nspawn if lab == "nspawn" else take_vm
            take(bench, repeat=repeat, cold=not options.quick)
            suites[lab] = bench.suites()
    result: dict[str, Any] = {
        "machine": {
            "cpus": os.cpu_count(),
            "python": platform.python_version(),
            "kernel": platform.release(),
        },
        "figures": {name: figure.as_json() for name, figure in figures.items()},
        "verify_suites_s": suites,
        "ratios": ratios(figures, RATIOS),
        "targets": targets(figures, TARGETS),
    }
    sys.stdout.write(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
