"""Disks of BeeGFS, Lustre and scratch: each has one use, and is no folder of a mount."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hpcsite.errors import Problem
from hpcsite.site.draft import Draft, key_text
from hpcsite.site.names import did_you_mean, fold
from hpcsite.site.rules.mounts import SCRATCH, hosts_of, mounts, within
from hpcsite.site.sources import KeyPath

# A partition as Linux names it: sda1 of sda, nvme0n1p1 of nvme0n1.
_PARTITION = re.compile(r"(/dev/(?:[shv]d[a-z]+(?=\d+$)|(?:nvme\d+n\d+|mmcblk\d+)(?=p\d+$)))\w+")


@dataclass(frozen=True)
class Use:
    """A disk or a folder of a host, and what it is for."""

    host: str
    device: str
    called: str
    path: KeyPath


def targets(draft: Draft) -> Iterator[Use]:
    """Devices and folders of the storage servers."""
    for number, system in draft.entries("beegfs"):
        called = f"the BeeGFS {draft.called('beegfs', number)}"
        path: KeyPath = ("site_beegfs", number)
        for index, meta in draft.numbered((*path, "meta"), system.meta or ()):
            for key in ("device", "path"):
                yield from _use(meta, getattr(meta, key), called, (*path, "meta", index, key))
        for index, storage in draft.numbered((*path, "storage"), system.storage or ()):
            for key in ("devices", "paths"):
                below = (*path, "storage", index, key)
                for item, device in draft.numbered(below, getattr(storage, key)):
                    yield from _use(storage, device, called, (*below, item))
    for number, system in draft.entries("lustre"):
        called = f"the Lustre {draft.called('lustre', number)}"
        for name in ("mdts", "osts"):
            path = ("site_lustre", number, name)
            for index, target in draft.numbered(path, getattr(system, name) or ()):
                yield from _use(target, target.device, called, (*path, index, "device"))


def _use(target: Any, device: str | None, called: str, path: KeyPath) -> Iterator[Use]:  # noqa: ANN401 - of three models
    """Give a target's use of a disk, where both are known."""
    if target.host and device:
        yield Use(target.host, device, called, path)


def scratch_disks(draft: Draft) -> Iterator[Use]:
    """Disks of the scratch file systems, on each host that has them."""
    for number, scratch in draft.entries("scratch", "devices"):
        path: KeyPath = ("site_scratch", number, "devices")
        hosts = hosts_of(draft, scratch.groups)
        for index, device in draft.numbered(path, scratch.devices):
            for host in hosts:
                yield Use(host, device, key_text(path[:2]), (*path, index))


def disks_have_one_use(draft: Draft) -> Iterator[Problem]:
    """No disk is used twice on one host, nor a partition of a disk that is used whole."""
    uses = [*targets(draft), *scratch_disks(draft)]
    first: dict[tuple[str, str], Use] = {}
    for use in uses:
        first.setdefault((use.host, use.device), use)
    twice: dict[tuple[KeyPath, str], tuple[Use, Use, list[str]]] = {}
    for use in uses:
        whole = _PARTITION.fullmatch(use.device)
        others = (first.get((use.host, d)) for d in (use.device, whole[1] if whole else None) if d)
        other = next((other for other in others if other and other is not use), None)
        if other:
            found = twice.setdefault((use.path, key_text(other.path)), (use, other, []))
            found[2].append(use.host)
    for use, other, hosts in twice.values():
        what = f"{use.device} of {fold(hosts)}"
        of = "" if other.device == use.device else f", as part of {other.device},"
        whose = "" if other.called == use.called else f": {other.called} has it too"
        yield draft.problem(
            f"{what}{of} is used twice{whose}",
            use.path,
            f"name each disk of a host once; the other place is {key_text(other.path)}",
            code="HPC1420",
        )


def targets_are_on_own_disks(draft: Draft) -> Iterator[Problem]:
    """No target is a folder in a file system that its host only mounts."""
    network = [mount for mount in mounts(draft) if mount.kind != SCRATCH]
    for use in targets(draft):
        if use.path[-1] != "path" and use.path[-2] != "paths":
            continue
        other = next(
            (m for m in network if use.host in m.hosts and within(use.device, (m.point,))), None
        )
        if other:
            yield draft.problem(
                f"{use.device} of {use.host} is no place for a target: "
                f"{other.called} is mounted on {other.point}",
                use.path,
                "keep targets on the server's own disks, outside of all mount points",
                code="HPC1421",
            )


def scratch_is_one_file_system(draft: Draft) -> Iterator[Problem]:
    """Several disks need a way to be one, and one disk none."""
    for number, scratch in draft.entries("scratch", "devices", "raid"):
        path: KeyPath = ("site_scratch", number)
        if not draft.is_whole("scratch", "devices"):
            return
        count = len(scratch.devices)
        if count > 1 and scratch.raid is None:
            yield draft.problem(
                f"{key_text(path)} has {count} disks, and does not say how they become one",
                (*path, "devices"),
                "add `raid: 0` for speed and size, or `raid: 1` for copies",
                code="HPC1423",
            )
        elif count == 1 and scratch.raid is not None:
            yield draft.problem(
                f"{key_text(path)} is a RAID of one disk",
                (*path, "raid"),
                "name the other disks in devices, or remove raid",
                code="HPC1422",
            )


def scratch_has_hosts(draft: Draft) -> Iterator[Problem]:
    """Check that the groups of a scratch file system are there."""
    groups = draft.inventory.groups
    for number, scratch in draft.entries("scratch", "groups"):
        path: KeyPath = ("site_scratch", number, "groups")
        for index, group in draft.numbered(path, scratch.groups):
            if group not in groups and group != "all":
                yield draft.problem(
                    f"{key_text(path[:2])} is for an unknown group {group}",
                    (*path, index),
                    did_you_mean(group, groups, "name a group of the inventory"),
                    code="HPC1424",
                )


RULES = (
    disks_have_one_use,
    targets_are_on_own_disks,
    scratch_is_one_file_system,
    scratch_has_hosts,
)
