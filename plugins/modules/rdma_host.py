#!/usr/bin/python
"""Say what a host has for RDMA, and why it cannot do what it is meant to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: rdma_host
short_description: What a host has for RDMA, and why it cannot do what it is meant to
description:
  - Looks for RDMA devices, network interfaces, adapters on the PCI bus and kernel modules. Changes
    nothing, and needs no package, so it can be run before anything is installed.
options:
  mode:
    description: What the host is meant to do.
    type: str
    required: true
    choices: [infiniband, roce, soft_roce, none]
  interface:
    description: Network interface under RoCE and soft-RoCE.
    type: str
    default: ""
  devices:
    description: RDMA devices that must be there; none means any that fits.
    type: list
    elements: str
    default: []
  installed:
    description: >-
      Whether packages and modules are in place, so that adapters must have become RDMA devices.
    type: bool
    default: false
author: hpcsite
"""

EXAMPLES = """
- name: Look at what the host has for RDMA
  rdma_host:
    mode: soft_roce
    interface: eth1
"""

RETURN = """
devices:
  description: RDMA devices, each with name, link_layers, interfaces and users (who has it open).
  returned: always
  type: list
  elements: dict
modules:
  description: Kernel modules that the mode needs.
  returned: always
  type: list
  elements: str
unloaded:
  description: Those of them that the kernel has and that are not loaded.
  returned: always
  type: list
  elements: str
problem:
  description: Why the host cannot do what it is meant to; empty if it can.
  returned: always
  type: str
"""

# PCI class code of an InfiniBand controller (PCI Code and ID Assignment Specification).
INFINIBAND_CLASS = "0x0207"
# udev loads what rdma-core knows to belong to an adapter; these are what programs need besides:
# connections by address, and management datagrams.
MODULES = {
    "infiniband": ["ib_uverbs", "rdma_ucm", "ib_umad", "ib_ipoib"],
    "roce": ["ib_uverbs", "rdma_ucm"],
    "soft_roce": ["rdma_rxe", "ib_uverbs", "rdma_ucm"],
    "none": [],
}


class Machine:
    """A host as its kernel shows it, below a root that tests choose."""

    def __init__(self, root: str = "/", release: str = "") -> None:
        self.sys = Path(root, "sys")
        self.modules = Path(root, "lib/modules", release or os.uname().release)
        self.container = Path(root, "run/systemd/container")
        self.proc = Path(root, "proc")

    def devices(self) -> list[dict[str, Any]]:
        """RDMA devices with the link layers of their ports, and the interfaces below them."""
        found, users = [], self.users()
        for device in sorted(self.sys.glob("class/infiniband/*")):
            layers = {read(path) for path in device.glob("ports/*/link_layer")}
            below = {read(path) for path in device.glob("ports/*/gid_attrs/ndevs/*")}
            below |= {path.name for path in device.glob("device/net/*")}
            # Only devices made by software name the interface that they were made on.
            below.add(read(device / "parent"))
            found.append(
                {
                    "name": device.name,
                    "link_layers": sorted(layers - {""}),
                    "interfaces": sorted(below - {""}),
                    "users": users.get(device.name, []),
                }
            )
        return found

    def users(self) -> dict[str, list[str]]:
        """Programs that have devices open, by device, as "name (pid)"; all are looked at once."""
        verbs = self.sys.glob("class/infiniband_verbs/*/ibdev")
        files = {f"/dev/infiniband/{path.parent.name}": read(path) for path in verbs}
        found: dict[str, set[Path]] = {}
        for descriptor in self.proc.glob("[0-9]*/fd/*") if files else ():
            if device := files.get(link_of(descriptor)):
                found.setdefault(device, set()).add(descriptor.parent.parent)
        return {
            device: sorted(
                f"{read(process / 'comm')} (pid {process.name})" for process in processes
            )
            for device, processes in found.items()
        }

    def interfaces(self) -> list[str]:
        """Network interfaces."""
        return sorted(path.name for path in self.sys.glob("class/net/*") if path.is_dir())

    def infiniband_adapters(self) -> list[str]:
        """PCI addresses of InfiniBand adapters, with or without a driver."""
        paths = sorted(self.sys.glob("bus/pci/devices/*/class"))
        return [path.parent.name for path in paths if read(path).startswith(INFINIBAND_CLASS)]

    def loaded(self, module: str) -> bool:
        """Whether a module is in the running kernel."""
        return Path(self.sys, "module", module).is_dir()

    def lacking(self, modules: list[str]) -> list[str]:
        """Those of the modules that the running kernel neither has nor can load."""
        known = set()
        for name in ("modules.dep", "modules.builtin"):
            for line in read(self.modules / name).splitlines():
                known.add(module_name(line.split(":")[0]))
        return [name for name in modules if not self.loaded(name) and name not in known]


def read(path: Path) -> str:
    """Text of a file; empty where there is none. Unused GID entries cannot be read."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def link_of(path: Path) -> str:
    """Where a link points; empty for one that went away."""
    try:
        return str(path.readlink())
    except OSError:
        return ""


def module_name(path: str) -> str:
    """C(kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko.xz) is the module C(rdma_rxe)."""
    return path.rpartition("/")[2].partition(".ko")[0].replace("-", "_")


def problem_of(machine: Machine, wanted: dict[str, Any]) -> str:
    """Why a host cannot do what it is meant to; empty if it can."""
    mode = wanted["mode"]
    if mode == "none":
        return ""
    if lacking := machine.lacking(MODULES[mode]):
        return lacking_problem(machine, mode, lacking)
    devices = machine.devices()
    if mode == "infiniband":
        return infiniband_problem(machine, devices, wanted)
    interface = wanted["interface"]
    if interface not in machine.interfaces():
        there = ", ".join(name for name in machine.interfaces() if name != "lo") or "none"
        return (
            f"rdma_interface is {interface or 'not set'}, and there is no such network interface; "
            f"this host has: {there}"
        )
    if mode == "roce" and wanted["installed"]:
        return roce_problem(devices, wanted)
    return ""


def lacking_problem(machine: Machine, mode: str, lacking: list[str]) -> str:
    """Say which modules are missing, and what is likely to help."""
    what = f"rdma_mode is {mode}, but the kernel {machine.modules.name} has no {', '.join(lacking)}"
    if machine.container.exists():
        return f"{what}: this host is a container, which has its host's kernel and its modules only"
    if not machine.modules.is_dir():
        return f"{what}: its modules were removed, as by an upgrade; reboot into the new kernel"
    return (
        f"{what}: kernels made for clouds and small virtual machines leave it out; install the "
        "distribution's general kernel (linux-image-amd64, linux-image-generic, or the package "
        "kernel-modules-extra) and reboot, or choose another rdma_mode"
    )


def infiniband_problem(machine: Machine, devices: list[dict[str, Any]], wanted: Any) -> str:  # noqa: ANN401
    """Say why there is no InfiniBand; empty if there is."""
    fit = [device["name"] for device in devices if "InfiniBand" in device["link_layers"]]
    if gone := [name for name in wanted["devices"] if name not in fit]:
        return f"no InfiniBand device {', '.join(gone)}; there is: {', '.join(fit) or 'none'}"
    if fit:
        return ""
    adapters = machine.infiniband_adapters()
    if adapters and not wanted["installed"]:
        return ""
    if adapters:
        return (
            f"the InfiniBand adapter at PCI {', '.join(adapters)} has no RDMA device: its driver "
            "is not loaded, or its firmware does not answer; look at `dmesg` and `lspci -k`"
        )
    other = ", ".join(f"{d['name']} ({'/'.join(d['link_layers'])})" for d in devices)
    return (
        "rdma_mode is infiniband, but no InfiniBand adapter (HCA) is on the PCI bus"
        f"{f', only {other}' if other else ''}; put one in, take the host out of the group rdma, "
        "or choose roce, soft_roce or none"
    )


def roce_problem(devices: list[dict[str, Any]], wanted: dict[str, Any]) -> str:
    """Say why no adapter does RoCE on the interface; empty if one does."""
    interface = wanted["interface"]
    fit = [d["name"] for d in devices if interface in d["interfaces"]]
    missing = [name for name in wanted["devices"] if name not in fit]
    if fit and not missing:
        return ""
    there = ", ".join(f"{d['name']} on {'/'.join(d['interfaces']) or 'nothing'}" for d in devices)
    named = f" {', '.join(missing)}" if missing else ""
    return (
        f"rdma_mode is roce, but no RDMA device{named} is on {interface}; there is: "
        f"{there or 'none'}. Is {interface} a port of a RoCE adapter, is it up, and does it have "
        "an address?"
    )


def main() -> None:
    """Look, and say what was seen."""
    module = AnsibleModule(
        argument_spec={
            "mode": {
                "type": "str",
                "required": True,
                "choices": list(MODULES),
            },
            "interface": {"type": "str", "default": ""},
            "devices": {"type": "list", "elements": "str", "default": []},
            "installed": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    machine = Machine()
    wanted = module.params
    modules = MODULES[wanted["mode"]]
    lacking = machine.lacking(modules)
    module.exit_json(
        changed=False,
        devices=machine.devices(),
        modules=modules,
        unloaded=[name for name in modules if not machine.loaded(name) and name not in lacking],
        problem=problem_of(machine, wanted),
    )


if __name__ == "__main__":
    main()
