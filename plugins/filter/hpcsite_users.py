"""Filters over the site's users and groups."""

from collections.abc import Iterable, Mapping
from typing import Any

Entry = Mapping[str, Any]


def in_state(entries: Iterable[Entry], state: str) -> list[Entry]:
    """Select users or groups by their state; an entry without one is present."""
    return [entry for entry in entries if entry.get("state", "present") == state]


def own_groups(users: Iterable[Entry]) -> list[dict[str, Any]]:
    """Name the group of each user who has no primary group: same name, same number."""
    return [{"name": user["name"], "gid": user["uid"]} for user in users if not user.get("group")]


def local_homes(users: Iterable[Entry], elsewhere: Iterable[str]) -> list[dict[str, Any]]:
    """Say of each user, as `create_home`, whether the home folder is made on this host.

    `elsewhere` names those whose home folders others make.
    """
    names = set(elsewhere)
    return [{**user, "create_home": user["name"] not in names} for user in users]


def home_keys(users: Iterable[Entry], groups: Iterable[Entry]) -> list[dict[str, Any]]:
    """Select, of what `local_homes` made, what the module `ssh_keys` wants to know.

    An empty list of keys leaves none, no list leaves the file alone.
    """
    gids = {group["name"]: group["gid"] for group in groups}
    return [
        {
            "name": user["name"],
            "path": user.get("home") or f"/home/{user['name']}",
            "uid": user["uid"],
            "gid": gids.get(user.get("group"), user["uid"]),
            "ssh_keys": user["ssh_keys"],
        }
        for user in users
        if user["create_home"] and user.get("ssh_keys") is not None
    ]


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Any]:
        """Name the filters."""
        return {
            "home_keys": home_keys,
            "in_state": in_state,
            "local_homes": local_homes,
            "own_groups": own_groups,
        }
