"""Measure what a large site takes before any host is touched, and print the figures as JSON.

    bench/large_site.py                 sites of 1,000 and 2,000 nodes; minutes, and some GB
    bench/large_site.py --stand-in      the same without Ansible's tool; seconds
    bench/large_site.py 500 --profile   one of 500, and where the time goes

Each site is made up: GPU nodes in groups, some with MIG, on leaves of 32 with 4 rails, in racks,
with accounts and users. It is loaded in a process of its own. `ansible_inventory_s` is what
Ansible's tool takes, `read_s` to read its answer, `check_s` all else until the site is loaded,
`slurm_s` is slurm.conf and topology.conf, `render_s` every file that can be rendered offline; all
in seconds of a CPU, which other work on the computer changes least.
"""

import argparse
import cProfile
import json
import os
import pstats
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml

PER_LEAF, PER_GROUP, PER_RACK, RAILS = 32, 250, 4, 4
# Seconds and MiB that a site of 1,000 nodes may take; a larger one in proportion, but for memory.
LOAD_S, SLURM_S, PEAK_MIB = 3.0, 1.0, 500.0


def make_site(folder: Path, nodes: int) -> None:
    """Write the inventory of a made-up site."""
    names = [f"n{number:04}" for number in range(1, nodes + 1)]
    groups = {
        f"g{start // PER_GROUP + 1}": names[start : start + PER_GROUP]
        for start in range(0, nodes, PER_GROUP)
    }
    addresses = {name: f"10.20.{n // 250}.{n % 250 + 1}" for n, name in enumerate(names)}
    children: dict[str, Any] = {
        "slurm_controller": {"hosts": {"head": {"ansible_host": "10.10.0.1"}}},
        **{group: {"hosts": {"head": {}}} for group in ("slurm_dbd", "mariadb")},
        "slurm_login": {"hosts": {"login": {"ansible_host": "10.10.0.2"}}},
        "slurm_compute": {
            "children": {
                group: {"hosts": {name: {"ansible_host": addresses[name]} for name in members}}
                for group, members in groups.items()
            }
        },
    }
    _write(folder / "hosts.yml", {"all": {"children": children}})
    variables = folder / "group_vars" / "all"
    _write(variables / "site.yml", {"site_name": "large", "site_domain": "large.example"})
    _write(variables / "fabric.yml", _fabric(names))
    _write(variables / "slurm.yml", _slurm(groups))
    _write(variables / "racks.yml", _racks(names))
    _write(variables / "users.yml", _users())


def _fabric(names: list[str]) -> dict[str, Any]:
    leaves = [names[start : start + PER_LEAF] for start in range(0, len(names), PER_LEAF)]
    switches: dict[str, Any] = {
        f"leaf{number}r{rail}": {
            "fabric": "ib",
            "links": [
                {"nodes": f"{members[0][0]}[{members[0][1:]}-{members[-1][1:]}]", "rail": rail}
            ],
            "uplinks": {f"spine{rail}": 16},
        }
        for number, members in enumerate(leaves, 1)
        for rail in range(RAILS)
    }
    for rail in range(RAILS):
        switches[f"spine{rail}"] = {
            "fabric": "ib",
            "role": "spine",
            "managed": True,
            "uplinks": {"core": 64},
        }
    switches["core"] = {"fabric": "ib", "role": "core"}
    fabric = {"kind": "infiniband", "speed_gbit_s": 400, "rails": RAILS}
    return {"site_fabrics": {"ib": fabric}, "site_switches": switches}


def _slurm(groups: dict[str, list[str]]) -> dict[str, Any]:
    hardware = {
        "sockets": 2,
        "cores_per_socket": 56,
        "threads_per_core": 2,
        "memory_mib": 2_064_000,
    }
    node_groups: dict[str, Any] = {
        group: {"hardware": hardware, "gpus": {"count": 8, "type": "h100"}, "weight": number}
        for number, group in enumerate(groups, 1)
    }
    for group, members in groups.items():
        node_groups[group]["mig"] = [{"nodes": members[-1], "profiles": {"1g.10gb": 7}}]
    partitions: list[dict[str, Any]] = [
        {"name": f"p-{group}", "node_groups": [group], "max_time": "1-00:00:00"} for group in groups
    ]
    partitions.append({"name": "all", "node_groups": list(groups), "default": True})
    return {"site_node_groups": node_groups, "site_partitions": partitions}


def _racks(names: list[str]) -> dict[str, Any]:
    racks = {
        f"r{start // PER_RACK:03}": {
            "units": 42,
            "contents": [
                {"hosts": f"{name}", "u": 1 + 8 * place}
                for place, name in enumerate(names[start : start + PER_RACK])
            ],
        }
        for start in range(0, len(names), PER_RACK)
    }
    return {"site_racks": racks}


def _users() -> dict[str, Any]:
    accounts = [{"name": f"a{number}"} for number in range(20)]
    users = [
        {"name": f"u{number:03}", "uid": 2000 + number, "accounts": [f"a{number % 20}"]}
        for number in range(100)
    ]
    return {"site_accounts": accounts, "site_users": users}


def _write(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def take(folder: Path, *, stand_in: bool, profile: bool) -> dict[str, float]:
    """Load and render a site in this process."""
    # Imported here: the process that makes the site is not to be measured.
    from hpcsite.deploy.render import render_site, slurm_configuration
    from hpcsite.errors import InvalidSiteError
    from hpcsite.site import inventory, load
    from hpcsite.site.sources import Sources
    from tests.unit.site.mini import resolve

    # A busy computer is no reason to give up.
    inventory.TIMEOUT_S = 1200
    read = resolve if stand_in else inventory.read_inventory
    read_s = 0.0

    def timed(path: Path, sources: Sources | None = None) -> inventory.Inventory:
        nonlocal read_s
        begin = time.process_time()
        found = read(path, sources)
        read_s += time.process_time() - begin
        return found

    profiler = cProfile.Profile()
    if profile:
        profiler.enable()
    begin = time.process_time()
    try:
        with patch.object(load, "read_inventory", timed):
            site = load.load_site(folder)
    except InvalidSiteError as error:
        sys.exit("\n".join(map(str, error.problems)))
    loaded = time.process_time()
    configuration = slurm_configuration(site)
    configured = time.process_time()
    render_site(site)
    rendered = time.process_time()
    if profile:
        profiler.disable()
        pstats.Stats(profiler, stream=sys.stderr).sort_stats("cumulative").print_stats(40)
    if configuration is None or configuration.problems or not configuration.topology_conf:
        sys.exit("bench: the made-up site is not rendered as a whole")
    return {
        "ansible_inventory_s": _usage_of_children(),
        "read_s": read_s,
        "check_s": loaded - begin - read_s,
        "slurm_s": configured - loaded,
        "render_s": rendered - configured,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _usage_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def figures(nodes: int, *, repeat: int, flags: list[str]) -> dict[str, Any]:
    """Measure a site of so many nodes; the least of each figure of `repeat` runs, and targets."""
    with tempfile.TemporaryDirectory(prefix="hpcsite-bench-") as work:
        folder = Path(work) / "large"
        make_site(folder, nodes)
        runs = [_child(folder, flags) for _ in range(repeat)]
    least = {name: round(min(run[name] for run in runs), 2) for name in runs[0]}
    least["load_s"] = round(least["read_s"] + least["check_s"], 2)
    most = {
        "load_s": LOAD_S * nodes / 1000,
        "slurm_s": SLURM_S * nodes / 1000,
        "peak_mib": PEAK_MIB,
    }
    met = {name: {"most": limit, "met": least[name] <= limit} for name, limit in most.items()}
    return {"nodes": nodes, "runs": repeat, **least, "targets": met}


def _child(folder: Path, flags: list[str]) -> dict[str, float]:
    argv = [sys.executable, "-m", "bench.large_site", "--take", str(folder), *flags]
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=True)
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def main() -> None:
    """Parse options, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("nodes", nargs="*", type=int, default=[1000, 2000])
    parser.add_argument("--repeat", type=int, default=3, help="runs of each site")
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    parser.add_argument("--stand-in", action="store_true", help="do without Ansible's tool")
    parser.add_argument("--take", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.take:
        taken = take(options.take, stand_in=options.stand_in, profile=options.profile)
        sys.stdout.write(json.dumps(taken))
        return
    flags = [
        flag
        for flag, wanted in (("--stand-in", options.stand_in), ("--profile", options.profile))
        if wanted
    ]
    sites = [figures(nodes, repeat=options.repeat, flags=flags) for nodes in options.nodes]
    result = {"cpus": os.cpu_count(), "sites": sites}
    sys.stdout.write(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
