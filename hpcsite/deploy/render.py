"""What a deploy would write, as far as the inventory alone says it: a whole site rendered offline.

Declared hardware counts as if each node had been measured and kept its contract. A node whose
hardware is not declared has no line, since only the node itself can tell.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hpcsite.deploy.templates import render_template, role_value, role_variables
from hpcsite.site.model import Host, NodeGroup, Site
from hpcsite.site.topology import slurm_tree
from hpcsite.slurm.accounts import render_accounts
from hpcsite.slurm.cluster import Controller, Paths, Server
from hpcsite.slurm.configuration import Configuration, configure
from hpcsite.slurm.hardware import NEEDED_CONTROLLERS, Candidate, Evidence

# Files that are not there for every site, and how they begin.
_ONCE_RENDERED = ("topology.conf", "slurmdbd.conf", "exports.*", "accounts")
_MARK = "# Managed by hpcsite"


def render_site(site: Site, configuration: Configuration | None = None) -> dict[str, str]:
    """Text by the name of the file; secrets are masked.

    `configuration` is `slurm_configuration` of the site, for who has it already.
    """
    files: dict[str, str] = {}
    configuration = configuration or slurm_configuration(site)
    if configuration:
        files |= configuration.files
    variables = _SiteVariables(site)
    if hosts := site.in_group("slurm_dbd"):
        text = render_template("slurmdbd", "slurmdbd.conf.j2", variables.of(hosts[0]))
        files["slurmdbd.conf"] = text
    for host in site.in_group("nfs_server"):
        text = render_template("nfs_server", "hpcsite.exports.j2", variables.of(host))
        files[f"exports.{host.name}"] = text
    first = next(iter(site.hosts.values()))
    files["hosts"] = render_template("base", "hosts.j2", variables.of(first))
    if accounts := render_accounts(site.keys):
        files["accounts"] = (
            f"{_MARK}: QOS, accounts and users as slurmdbd is to hold them.\n{accounts}"
        )
    return files


def write_files(files: Mapping[str, str], folder: Path) -> list[str]:
    """Write rendered files into a folder, and remove what an earlier rendering left there.

    Returns the names. Files of another origin stay.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in _ONCE_RENDERED:
        for path in folder.glob(name):
            if path.name not in files and path.is_file() and _is_ours(path):
                path.unlink()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return list(files)


def _is_ours(path: Path) -> bool:
    with path.open(encoding="utf-8", errors="replace") as stream:
        return stream.readline().startswith(_MARK)


def slurm_configuration(site: Site) -> Configuration | None:
    """Make Slurm's files; None for a site without a controller."""
    controllers = site.in_group("slurm_controller")
    if not controllers:
        return None
    database = site.in_group("slurm_dbd")
    compute = site.in_group("slurm_compute")
    variables = _SiteVariables(site).of(controllers[0])
    return configure(
        site.keys,
        Controller(
            name=controllers[0].name,
            address=controllers[0].address,
            database_host=database[0].name if database else None,
            backups=tuple(
                Server(host.name, host.address) for host in site.in_group("slurm_backup_controller")
            ),
        ),
        Paths(
            state_dir=str(role_value("slurmctld", "slurmctld_state_dir", variables)),
            spool_dir=str(role_value("slurmctld", "slurmctld_spool_dir", variables)),
        ),
        [_candidate(site, host) for host in compute],
        version=site.keys.software.slurm or "",
        tree=(
            None
            if site.keys.topology == "none"
            else slurm_tree(site.keys, [host.name for host in compute])
        ),
    )


def _candidate(site: Site, host: Host) -> Candidate:
    name = site.node_group_of(host) or ""
    group = site.keys.node_groups.get(name)
    return Candidate(host.name, host.address, name, _evidence(group) if group else None)


def _evidence(group: NodeGroup) -> Evidence | None:
    """Measure a node that is just what its group declares."""
    hardware = group.hardware
    if hardware is None:
        return None
    gpus = group.gpus
    return Evidence(
        cpus=hardware.cpus,
        sockets=hardware.sockets,
        cores_per_socket=hardware.cores_per_socket,
        threads_per_core=hardware.threads_per_core,
        memory_mib=hardware.memory_mib,
        gpu_devices=tuple(f"{gpus.device}{n}" for n in range(gpus.count)) if gpus else (),
        cgroup_controllers=NEEDED_CONTROLLERS,
    )


class _SiteVariables:
    """Variables of hosts as Ansible has them, less what only a host can tell."""

    def __init__(self, site: Site) -> None:
        keys = site.keys.model_dump(mode="json")
        names = {group for host in site.hosts.values() for group in host.groups}
        self._common: dict[str, Any] = {
            **{f"site_{name}": value for name, value in keys.items()},
            "inventory_dir": str(site.path),
            "hostvars": {name: host.vars for name, host in site.hosts.items()},
            "groups": {
                "all": list(site.hosts),
                **{name: [host.name for host in site.in_group(name)] for name in sorted(names)},
            },
        }

    def of(self, host: Host) -> dict[str, Any]:
        """Give the variables of one host, with what the role `site` works out for all roles."""
        return {
            **role_variables("site"),
            **self._common,
            **host.vars,
            "inventory_hostname": host.name,
            "group_names": sorted(host.groups),
        }
