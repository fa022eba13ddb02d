"""Labs of systemd-nspawn machines as such: who may have one, on which network, and their end."""

import os
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

from hpcsite.image import aptconf, mounts, roots, tools
from hpcsite.lab import cgroups, host, machine, network, nspawn
from hpcsite.lab.backend import Nature
from hpcsite.lab.identity import Environment
from hpcsite.lab.spec import LabSpec
from hpcsite.lab.state import LabDirs, require_mountable


class NspawnKind:
    """The nspawn backend as such."""

    def require(self) -> None:
        """Check that this is root, and that the tools are there.

        Raises:
            CouldNotRunError: it is not, or they are not.
        """
        host.require_root()
        require_mountable()
        tools.require(nspawn.TOOLS)

    def require_own(self, name: str, dirs: LabDirs) -> None:
        """Check that the lab's bridge is absent or this lab's.

        Raises:
            CouldNotRunError: it belongs to another lab.
        """
        network.require_own_bridge(name, dirs.root)

    def require_free(self, spec: LabSpec, dirs: LabDirs) -> None:
        """Check that nothing but the lab's own bridge uses its network.

        Raises:
            CouldNotRunError: names the interface or route that does.
        """
        network.require_free(spec.name, spec.network)

    def open(self, spec: LabSpec, dirs: LabDirs, login_key: str) -> nspawn.Nspawn:
        """Make, or mend, the lab's network.

        Raises:
            CouldNotRunError: the network collides with another, or a tool fails.
        """
        net = network.Network(spec.name, spec.network, dirs.root, host.uplink_mtu())
        network.ensure(net)
        apt = aptconf.read_host_apt()
        environment = Environment(
            network=spec.network,
            mtu=net.mtu,
            resolvers=tuple(host.resolvers()),
            proxy=apt.machine_proxy(str(net.gateway)),
            login_key=login_key,
        )
        return nspawn.Nspawn(net, dirs, environment, apt, spec.settings)

    def tear_down(self, name: str, dirs: LabDirs) -> None:
        """Remove the machines, the network and the mounts."""
        nodes = dirs.nodes()
        with ThreadPoolExecutor(len(nodes) or 1) as pool:
            list(pool.map(lambda node: machine.remove(dirs.machine(node)), nodes))
        network.remove(name)
        mounts.unmount_below(dirs.root)
        roots.release(dirs.root)

    def exists(self, dirs: LabDirs, node: str) -> bool:
        """Tell whether a machine was made, completely."""
        return dirs.machine(node).image.is_file()

    def running(self, dirs: LabDirs, node: str) -> bool:
        """Tell whether a machine is switched on."""
        return machine.running(dirs.machine(node))

    def trouble(self, dirs: LabDirs, node: str) -> str:
        """Return nothing: a container has no kernel of its own to fail."""
        return ""

    def nature(self, dirs: LabDirs, running: Collection[str]) -> Nature:
        """Measure which cgroup v2 controllers this computer's kernel hands on."""
        found = _controllers(dirs, running)
        words = cgroups.in_words(found, v1=cgroups.host_runs_v1())
        return Nature(words=words, cgroup_controllers=tuple(found))


def _controllers(dirs: LabDirs, running: Collection[str]) -> list[str]:
    """Return what a running machine has; where none runs, what this process has."""
    for node in running:
        measured = machine.controllers(dirs.machine(node))
        if measured is not None:
            return measured
    return cgroups.controllers(os.getpid())
