"""Copies of the repository's labs, under names and addresses of their own.

Molecule and the bench work on copies, so that nobody's own lab is touched. Molecule's playbooks
call this module; its scenarios set HPCSITE_MOLECULE_LAB, a name in LABS, and HPCSITE_STATE_DIR:

    python -m tests.labs make     the copy of the inventory
    python -m tests.labs show     where it is and what is in it, as JSON
    python -m tests.labs remove   the machines and the copy, if they are there
"""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import testinfra
from testinfra.host import Host as TestinfraHost

from hpcsite.paths import content_dir, state_dir
from hpcsite.site.load import load_site
from hpcsite.site.model import Host, Site

HPCSITE = Path(sys.executable).with_name("hpcsite")


def copy_lab(source: str, target: Path, *, name: str, network: str, port_offset: int = 0) -> None:
    """Copy `inventory/SOURCE`, less its keys and secrets, to another name, network and ports.

    `network` is the first three octets; the hosts keep the last one.
    """
    origin = content_dir() / "inventory" / source
    site = load_site(origin)
    if site.keys.lab is None:
        raise ValueError(f"{origin} is no lab")
    old = str(site.keys.lab.network.network_address).rpartition(".")[0]
    shutil.copytree(
        origin,
        target,
        ignore=shutil.ignore_patterns(".lab", "secrets"),
        dirs_exist_ok=True,
    )
    for file in target.rglob("*.yml"):
        text = file.read_text("utf-8").replace(f"{old}.", f"{network}.")
        text = re.sub(
            r"\b(ansible_port: )(\d+)", lambda m: f"{m[1]}{int(m[2]) + port_offset}", text
        )
        text = re.sub(rf"^(site_name:) {site.name}$", rf"\1 {name}", text, flags=re.MULTILINE)
        file.write_text(text, "utf-8")


@dataclass(frozen=True)
class Lab:
    """One of molecule's labs."""

    source: str
    name: str
    network: str
    # Suites of `hpcsite verify` that have something to look at here.
    suites: frozenset[str]
    port_offset: int = 0
    # Checks that have nothing to look at here; None where that depends on this computer's kernel.
    skipped: frozenset[str] | None = None

    @property
    def folder(self) -> Path:
        """The inventory."""
        return state_dir() / self.name

    @property
    def notes(self) -> Path:
        """What a side effect leaves for the tests that follow it."""
        return state_dir() / f"{self.name}-notes"

    @property
    def ssh_config(self) -> Path:
        """For ssh(1), testinfra and Ansible: every machine under its name."""
        return state_dir() / f"{self.name}.ssh_config"

    @property
    def site(self) -> Site:
        """The site as it is now: a side effect may have changed it."""
        return load_site(self.folder)

    def make(self) -> None:
        """Make the copy, or bring it back to what it was; keys and secrets stay."""
        copy_lab(
            self.source,
            self.folder,
            name=self.name,
            network=self.network,
            port_offset=self.port_offset,
        )
        shutil.rmtree(self.notes, ignore_errors=True)
        self.notes.mkdir()

    def remove(self) -> None:
        """Remove the lab's machines, the copy and the notes."""
        if self.folder.exists():
            done = self.hpcsite("lab down")
            if done.returncode:
                sys.exit(done.stderr)
        for folder in (self.folder, self.notes):
            shutil.rmtree(folder, ignore_errors=True)
        self.ssh_config.unlink(missing_ok=True)

    def describe(self) -> dict[str, Any]:
        """Where it is and what is in it; writes `ssh_config` anew."""
        site = self.site
        entries = (self._entry(host) for host in site.hosts.values())
        self.ssh_config.write_text("".join(entries), "utf-8")
        return {
            "inventory": str(self.folder),
            "notes": str(self.notes),
            "ssh_config": str(self.ssh_config),
            "hpcsite": str(HPCSITE),
            "user": site.keys.verify_user,
            "hosts": [
                {"name": host.name, "groups": sorted(host.groups)} for host in site.hosts.values()
            ],
        }

    def _entry(self, host: Host) -> str:
        keys = self.folder / ".lab" / "ssh"
        options = {
            "HostName": host.vars["ansible_host"],
            "Port": host.vars.get("ansible_port", 22),
            "User": host.vars["ansible_user"],
            "IdentityFile": f'"{keys / "id_ed25519"}"',
            "IdentitiesOnly": "yes",
            "UserKnownHostsFile": f'"{keys / "known_hosts"}"',
            "BatchMode": "yes",
            "ControlMaster": "auto",
            # A socket's path has at most 107 bytes.
            "ControlPath": f'"{self.notes}/%h-%p"',
            "ControlPersist": "60",
            # A machine that is rebooted answers nothing for a while.
            "ConnectTimeout": "10",
            "ServerAliveInterval": "5",
        }
        return f"Host {host.name}\n" + "".join(
            f"  {key} {value}\n" for key, value in options.items()
        )

    def host(self, name: str) -> TestinfraHost:
        """One machine, by ssh as root."""
        return testinfra.get_host(f"ssh://{name}", ssh_config=str(self.ssh_config))

    def hpcsite(self, command: str, *options: str) -> subprocess.CompletedProcess[str]:
        """Run `hpcsite COMMAND FOLDER OPTIONS`."""
        return subprocess.run(
            [HPCSITE, *command.split(), self.folder, *options],
            capture_output=True,
            text=True,
            check=False,
        )


_SUITES = frozenset({"node", "slurm", "mpi"})
# Whose kernels are their own has more to show.
_VM_SUITES = _SUITES | {"isolation", "fabric", "storage"}
LABS = {
    "nspawn": Lab("lab", "molecule", "10.61.7", _SUITES),
    "vm": Lab(
        "vmlab",
        "moleculevm",
        "10.61.8",
        _VM_SUITES,
        port_offset=1000,
        # There is no CUDA, four GPUs on two CPUs cannot all have a job, and no machine of a lab has
        # PCIe of its own.
        skipped=frozenset({"node/cuda", "node/pcie", "slurm/gpu_fill"}),
    ),
}


def chosen_lab() -> Lab:
    """Return the lab that molecule's scenario names."""
    return LABS[os.environ["HPCSITE_MOLECULE_LAB"]]


def main() -> None:
    """Do what the command line says."""
    (verb,) = sys.argv[1:]
    lab = chosen_lab()
    if verb == "remove":
        lab.remove()
        return
    if verb == "make":
        lab.make()
    sys.stdout.write(json.dumps(lab.describe()) + "\n")


if __name__ == "__main__":
    main()
