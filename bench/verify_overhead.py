"""Compare `hpcsite verify` with the same commands by hand, and with ReFrame, on a lab of its own.

    sudo bench/verify_overhead.py [--checks 500] [--repeat 3]       about 20 minutes on 2 cores

- `suites`: the wall time of a suite, and of the commands that it recorded, pasted into a shell
  script that runs on the login node as the same user. By turns, so that a slow computer is slow for
  both.
- `trivial`: so many checks of a job each that does nothing; and the same by ReFrame from PyPI, in
  its default of eight jobs at a time, through the same Slurm. All go to one node, where ReFrame
  runs too, since the lab's nodes share no folder. Slurm is told to look at each job at once: by
  default it waits up to 3 s, which is then all that either measures.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from hpcsite.site.connection import ssh_argv
from hpcsite.site.load import load_site
from hpcsite.site.model import Site
from tests.labs import copy_lab

HPCSITE = Path(sys.executable).with_name("hpcsite")
NETWORK, NODE, LOGIN = "10.217.0", "gpu01", "login"
KEYS = """\
verify_tools_torch: true
site_slurm_parameters:
  SchedulerParameters: batch_sched_delay=0,sched_min_interval=0
"""
FAR = "/tmp/hpcsite-bench-reframe"  # noqa: S108 - on a machine of the lab
SETTINGS = """\
site_configuration = {
    "systems": [{
        "name": "lab",
        "hostnames": [".*"],
        "partitions": [{
            "name": "node",
            "scheduler": "slurm",
            "launcher": "local",
            "access": ["--nodelist=%s", "--mem=64M"],
            "environs": ["builtin"],
        }],
    }],
    "environments": [{"name": "builtin"}],
}
"""
TESTS = """\
import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class Trivial(rfm.RunOnlyRegressionTest):
    number = parameter(range(%d))
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "true"
    time_limit = "2m"

    @sanity_function
    def ended_well(self):
        return sn.assert_eq(self.job.exitcode, 0)
"""
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux2014_x86_64")


class Lab:
    """A deployed lab, and commands on its machines."""

    def __init__(self, work: Path) -> None:
        self.inventory = work / "overhead"
        self.environment = {**os.environ, "HPCSITE_STATE_DIR": str(work / "state")}
        copy_lab("lab", self.inventory, name="overhead", network=NETWORK)
        (self.inventory / "group_vars/all/bench.yml").write_text(KEYS, "utf-8")

    @property
    def site(self) -> Site:
        """The site as it is described."""
        return load_site(self.inventory)

    def hpcsite(self, *words: str) -> str:
        """Run hpcsite; what it printed."""
        argv = [str(HPCSITE), *words[:1], *(() if words[0] != "lab" else words[1:2])]
        rest = words[2:] if words[0] == "lab" else words[1:]
        return self.own([*argv, str(self.inventory), *rest])

    def own(self, argv: list[str]) -> str:
        """Run a command on this computer."""
        done = subprocess.run(
            argv, env=self.environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            sys.exit(f"{shlex.join(argv)[:300]}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def on(self, host: str, command: str, stdin: bytes | None = None) -> str:
        """Run a command on a machine, as root."""
        argv = [*ssh_argv(self.site, self.site.hosts[host]), command]
        done = subprocess.run(argv, input=stdin, capture_output=True, check=False)
        if done.returncode:
            sys.exit(f"{host}: {done.returncode}\n{done.stdout.decode()}{done.stderr.decode()}")
        return done.stdout.decode()

    def as_user(self, host: str, script: str) -> str:
        """Run a script in a login shell of the verify user."""
        user = self.site.keys.verify_user
        return self.on(host, f"runuser -u {user} -- bash -l -s", f"cd /\n{script}\n".encode())


def suite_against_hand(lab: Lab, suite: str, repeat: int) -> dict[str, Any]:
    """Seconds of a suite, and of its commands in a script."""
    suite_s, hand_s = [], []
    for _ in range(repeat):
        begin = time.monotonic()
        run = json.loads(lab.hpcsite("verify", suite, "--json"))
        suite_s.append(time.monotonic() - begin)
        commands = dict.fromkeys(line for one in run["results"] for line in one["commands"])
        begin = time.monotonic()
        lab.as_user(LOGIN, "\n".join(f"{line} >/dev/null </dev/null" for line in commands))
        hand_s.append(time.monotonic() - begin)
        lab.as_user(LOGIN, f"rm -rf /tmp/hpcsite-{run['run_id']}*")
    return compared(suite_s, hand_s, "by_hand_s")


def trivial_against_reframe(lab: Lab, count: int, repeat: int) -> dict[str, Any]:
    """Seconds of many checks that do nothing, and of as many tests of ReFrame."""
    own_s, other_s = [], []
    for _ in range(repeat):
        begin = time.monotonic()
        lab.own([sys.executable, "-m", "bench.trivial", str(lab.inventory), str(count)])
        own_s.append(time.monotonic() - begin)
        begin = time.monotonic()
        run_reframe(lab)
        other_s.append(time.monotonic() - begin)
    return {"checks": count, **compared(own_s, other_s, "reframe_s")}


def compared(own_s: list[float], other_s: list[float], other: str) -> dict[str, Any]:
    """Return both and the ratio of their medians, which alone means something."""
    ratio = statistics.median(own_s) / statistics.median(other_s)
    return {
        "hpcsite_s": [round(one, 2) for one in own_s],
        other: [round(one, 2) for one in other_s],
        "ratio": round(ratio, 3),
    }


def install_reframe(lab: Lab, work: Path, count: int) -> None:
    """Put ReFrame into a folder of its own on the node, for the node's Python."""
    ask = "python3 -c 'import sys; print(*sys.version_info[:2], sep=\".\")'"
    folder = work / "reframe"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--only-binary=:all:"]
    pip += [f"--platform={one}" for one in PLATFORMS]
    version = lab.on(NODE, ask).strip()
    lab.own([*pip, f"--python-version={version}", f"--target={folder}", "reframe-hpc"])
    (folder / "settings.py").write_text(SETTINGS % NODE, "utf-8")
    (folder / "trivial.py").write_text(TESTS % count, "utf-8")
    packed = subprocess.run(["tar", "-C", folder, "-cf", "-", "."], capture_output=True, check=True)
    lab.on(NODE, f"mkdir -p {FAR} && tar -C {FAR} -xf - && chmod -R a+rX {FAR}", packed.stdout)


def run_reframe(lab: Lab) -> None:
    """Run the tests; ReFrame ends with an error if one fails."""
    own = f"{FAR}-own"
    lab.as_user(
        NODE,
        f"rm -rf {own}; mkdir {own} && cd {own} && "
        f"HOME={own} PYTHONPATH={FAR} python3 {FAR}/bin/reframe "
        f"-C {FAR}/settings.py --system=lab -c {FAR}/trivial.py -r >reframe.out 2>&1 </dev/null "
        "|| { tail -n 20 reframe.out; exit 1; }",
    )


def main() -> None:
    """Make a lab, measure, print JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--checks", type=int, default=500)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hpcsite-bench-") as folder:
        work = Path(folder)
        lab = Lab(work)
        try:
            lab.hpcsite("lab", "up")
            lab.hpcsite("deploy", "--no-verify")
            suites = {
                suite: suite_against_hand(lab, suite, options.repeat)
                for suite in ("mpi", "training")
            }
            install_reframe(lab, work, options.checks)
            trivial = trivial_against_reframe(lab, options.checks, options.repeat)
        finally:
            lab.hpcsite("lab", "down")
    print(json.dumps({"suites": suites, "trivial": trivial}, indent=2))


if __name__ == "__main__":
    main()
