"""Unix groups and users."""

from typing import Literal

from pydantic import Field

from hpcsite.site.model.base import ABSOLUTE, COMMENT, FixedId, Frozen, LoginName


class Group(Frozen):
    """A Unix group that exists on every node with the same gid."""

    name: LoginName = Field(description="the group's name")
    gid: FixedId = Field(description="the same on every host; 1000 or more")
    state: Literal["present", "absent"] = Field(
        "present", description="absent: removed from every host"
    )


class User(Frozen):
    """A site user: the same uid on every node."""

    name: LoginName = Field(description="login name")
    uid: FixedId = Field(description="the same on every host; 1000 or more")
    group: LoginName | None = Field(
        None, description="primary group, of site_groups; not set: one of the user's own name"
    )
    groups: tuple[LoginName, ...] = Field((), description="further groups, of site_groups")
    comment: str = Field("", pattern=COMMENT, description="GECOS field, e.g. the real name")
    shell: str = Field("/bin/bash", pattern=ABSOLUTE, description="login shell")
    home: str | None = Field(None, pattern=ABSOLUTE, description="home folder; not set: /home/NAME")
    ssh_keys: tuple[str, ...] = Field(
        (), description="public keys, one line each; set but empty: nobody logs in by key"
    )
    state: Literal["present", "absent"] = Field(
        "present", description="absent: removed from every host; the home folder stays"
    )
