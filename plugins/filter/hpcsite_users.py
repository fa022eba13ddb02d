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


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Any]:
        """Name the filters."""
        return {"in_state": in_state, "own_groups": own_groups}
