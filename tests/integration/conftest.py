"""A site of virtual machines for the tests of deploy and verify.

`lab_site` is up and bare, `deployed_site` is the same one deployed. Both last for the session, in
a folder with a space in its path, with a state folder of their own.

With `--numprocesses 2 --dist loadfile` each process has a lab of this kind of its own.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hpcsite.paths import content_dir

HPCSITE = Path(sys.executable).parent / "hpcsite"
# Of pytest-xdist: "gw0", "gw1" and so on; not set where there is one process.
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
NAME, NETWORK = f"deploytest{WORKER}", f"10.243.{WORKER}"
USER = "alice"


class LabSite:
    """An inventory of its own, the command line, and a way into its machines."""

    def __init__(self, folder: Path, *, name: str = NAME, network: str = NETWORK) -> None:
        self.name = name
        self.network = network
        self.folder = folder
        self.state = folder / "state"
        self.inventory = folder / "a site" / name
        self.env = {**os.environ, "HPCSITE_STATE_DIR": str(self.state)}
        source = content_dir() / "inventory" / "lab"
        shutil.copytree(source, self.inventory, ignore=shutil.ignore_patterns(".lab", "secrets"))
        self.edit("hosts.yml", "10.213.0", network)
        self.edit("group_vars/all/lab.yml", "10.213.0", network)
        self.edit("group_vars/all/site.yml", "site_name: lab\n", f"site_name: {name}\n")

    def edit(self, file: str, old: str, new: str) -> None:
        path = self.inventory / file
        text = path.read_text("utf-8")
        assert old in text, f"{old!r} is not in {file}"
        path.write_text(text.replace(old, new), "utf-8")

    def argv(self, command: str, *rest: str) -> list[str]:
        return [str(HPCSITE), *command.split(), str(self.inventory), *rest]

    def start(self, command: str, *rest: str) -> subprocess.Popen[str]:
        """Start hpcsite in a working folder that has nothing to do with the site."""
        return subprocess.Popen(
            self.argv(command, *rest),
            env=self.env,
            cwd="/",
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, command: str, *rest: str) -> subprocess.CompletedProcess[str]:
        process = self.start(command, *rest)
        out, error = process.communicate(timeout=600)
        return subprocess.CompletedProcess(process.args, process.returncode, out, error)

    def ok(self, command: str, *rest: str) -> str:
        done = self.run(command, *rest)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    def deploy(self, *options: str, expect: int = 0) -> dict[str, Any]:
        """Deploy without the verification at the end; returns the outcome."""
        done = self.run("deploy", "--no-verify", "--json", *options)
        assert done.returncode == expect, f"{done.stdout}\n{done.stderr}"
        assert "\x1b" not in done.stderr
        outcome = json.loads(done.stdout)
        assert isinstance(outcome, dict)
        outcome["recap"] = done.stderr
        return outcome

    def ssh(self, node: str, command: str, *, stdin: str | None = None) -> str:
        done = self.ssh_raw(node, command, stdin=stdin)
        assert done.returncode == 0, f"{node}: {command}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def ssh_raw(
        self, node: str, command: str, *, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        octets = {"head": 10, "login": 11, "gpu01": 21, "gpu02": 22, "gpu03": 23}
        files = self.inventory / ".lab" / "ssh"
        return subprocess.run(
            [
                *("ssh", "-F", "none", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"),
                *("-o", f'UserKnownHostsFile="{files / "known_hosts"}"', "-o", "LogLevel=ERROR"),
                *("-i", str(files / "id_ed25519"), f"root@{self.network}.{octets[node]}", command),
            ],
            input=stdin if stdin is not None else "",
            capture_output=True,
            text=True,
            check=False,
        )

    def as_user(self, command: str, *, node: str = "login") -> str:
        """Run a command as the ordinary user, in a folder that the user may read."""
        return self.ssh(node, f"cd /tmp && runuser -u {USER} -- sh -c {shlex.quote(command)}")


@pytest.fixture(scope="session")
def lab_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabSite]:
    if os.geteuid() != 0:
        pytest.skip("the lab needs root")
    site = LabSite(tmp_path_factory.mktemp("deploy"))
    try:
        site.ok("lab up")
        yield site
    finally:
        site.run("lab down")


@pytest.fixture(scope="session")
def deployed_site(lab_site: LabSite) -> LabSite:
    lab_site.deploy()
    return lab_site
