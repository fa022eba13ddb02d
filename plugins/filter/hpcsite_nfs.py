"""Filters that work out, once for all roles, what site_nfs_exports means for each host."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Entry = Mapping[str, Any]
_DEFAULTS: dict[str, Any] = {
    "group": "root",
    "mode": "0755",
    "read_only": False,
    "root_squash": True,
    "rdma": False,
    "automount": False,
    "options": [],
}


def nfs_exports(exports: Iterable[Entry], servers: Sequence[str]) -> list[dict[str, Any]]:
    """Fill in what is left out, outer mounts before those inside of them.

    `unit` is the name of the mount's unit without suffix; with `bind`, the server's own mount point
    is another folder than the one that it exports. `fsid` tells the server's file handles
    apart: it comes of the path alone, so that it is the same after a reboot, on another disk and
    on file systems that have no UUID.
    """
    whole = []
    for export in exports:
        entry = _DEFAULTS | {key: value for key, value in export.items() if value is not None}
        entry["mount"] = entry.get("mount") or entry["path"]
        entry["server"] = entry.get("server") or next(iter(servers), "")
        entry["bind"] = entry["mount"] != entry["path"]
        entry["unit"] = nfs_unit(entry["mount"])
        entry["fsid"] = str(uuid.uuid5(uuid.NAMESPACE_URL, f"nfs://{entry['path']}"))
        whole.append(entry)
    return sorted(whole, key=lambda entry: str(entry["mount"]).split("/"))


def nfs_unit(path: str) -> str:
    """Write a path as systemd-escape --path does. Paths of exports hold nothing else to escape."""
    return str(path).strip("/").replace("-", r"\x2d").replace("/", "-")


def nfs_units(exports: Iterable[Entry], suffix: str | None = None) -> list[Any]:
    """Units of mounts as the module `mounts` takes them, or their names with a suffix."""
    if suffix is not None:
        return [f"{export['unit']}.{suffix}" for export in exports]
    return [{"name": export["unit"], "automount": export["automount"]} for export in exports]


def nfs_mounts(exports: Iterable[Entry]) -> list[dict[str, Any]]:
    """Select what the module `hidden_files` wants to know of each."""
    return [{key: export[key] for key in ("mount", "unit")} for export in exports]


def nfs_homes(
    users: Iterable[Entry], exports: Iterable[Entry], groups: Iterable[Entry]
) -> list[dict[str, Any]]:
    """Find the users whose home folders lie on an export, with the folder on its server.

    `exports` is what `nfs_exports` made; of mounts inside of each other, the innermost counts.
    """
    gids = {group["name"]: group["gid"] for group in groups}
    innermost = sorted(exports, key=lambda export: len(str(export["mount"])), reverse=True)
    homes = []
    for user in users:
        home = str(user.get("home") or f"/home/{user['name']}")
        export = next((each for each in innermost if home.startswith(f"{each['mount']}/")), None)
        if user.get("state", "present") != "present" or export is None:
            continue
        homes.append(
            {
                "name": user["name"],
                "uid": user["uid"],
                "gid": gids.get(user.get("group"), user["uid"]),
                "server": export["server"],
                "path": export["path"] + home.removeprefix(export["mount"]),
                **({"ssh_keys": user["ssh_keys"]} if user.get("ssh_keys") is not None else {}),
            }
        )
    return homes


def nfs_home_folders(homes: Iterable[Entry]) -> list[dict[str, Any]]:
    """Select what the module `home_folders` wants to know of each."""
    return [{key: home[key] for key in ("name", "path", "uid", "gid")} for home in homes]


def nfs_home_keys(homes: Iterable[Entry]) -> list[dict[str, Any]]:
    """Select what the module `ssh_keys` wants to know of each user whose keys the site keeps."""
    wanted = ("name", "path", "uid", "gid", "ssh_keys")
    return [{key: home[key] for key in wanted} for home in homes if "ssh_keys" in home]


def nfs_mount_points(exports: Iterable[Entry], server: str) -> list[str]:
    """Folders that a server must have in its exports because others are mounted there.

    A client cannot make them: its root is nobody on the server.
    """
    every = list(exports)
    points = []
    for outer in every:
        if outer["server"] != server:
            continue
        inside = [each for each in every if each["mount"].startswith(f"{outer['mount']}/")]
        points += [outer["path"] + each["mount"].removeprefix(outer["mount"]) for each in inside]
    return sorted({*points} - {each["path"] for each in every if each["server"] == server})


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Any]:
        """Name the filters."""
        return {
            "nfs_exports": nfs_exports,
            "nfs_home_folders": nfs_home_folders,
            "nfs_home_keys": nfs_home_keys,
            "nfs_homes": nfs_homes,
            "nfs_mount_points": nfs_mount_points,
            "nfs_mounts": nfs_mounts,
            "nfs_units": nfs_units,
        }
