"""Unix groups, users, and their accounts in Slurm."""

from typing import Annotated, Literal

from pydantic import Field

from hpcsite.site.model.base import (
    ABSOLUTE,
    COMMENT,
    LINE,
    PARTITION_NAME,
    AccountName,
    Fairshare,
    FixedId,
    Frozen,
    LoginName,
    Name,
    SlurmTime,
    TresMap,
)


class Group(Frozen):
    """A Unix group that exists on every node with the same gid."""

    name: LoginName = Field(description="the group's name", examples=["research"])
    gid: FixedId = Field(description="the same on every host; 1000 or more", examples=[2000])
    state: Literal["present", "absent"] = Field(
        "present", description="absent: removed from every host"
    )


class User(Frozen):
    """A site user: the same uid on every node."""

    name: LoginName = Field(description="login name", examples=["alice"])
    uid: FixedId = Field(description="the same on every host; 1000 or more", examples=[2001])
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
    accounts: tuple[AccountName, ...] = Field(
        (), description="accounts of site_accounts that the user may charge", examples=[["physics"]]
    )
    default_account: AccountName | None = Field(
        None, description="one of accounts; not set: the first of them"
    )


class Limits(Frozen):
    """What an account and an association have in common: shares and limits."""

    fairshare: Fairshare = Field(
        1, description="shares in those of the parent, or parent", examples=[40, "parent"]
    )
    max_jobs: int | None = Field(None, ge=0, description="jobs that run at a time; not set: any")
    max_wall: SlurmTime | None = Field(
        None, description="longest time of a job; not set: no limit", examples=["2-00:00:00"]
    )
    grp_tres: TresMap = Field(
        {},
        description="what all running jobs together may hold, by TRES",
        examples=[{"gres/gpu": 64}],
    )
    qos: tuple[Name, ...] = Field(
        (), description="QOS of site_qos that may be used; empty: those of the parent"
    )
    default_qos: Name | None = Field(None, description="QOS of a job that names none; one of qos")


class Account(Limits):
    """An account of Slurm's accounting, e.g. a department or a project."""

    name: AccountName = Field(description="the account's name", examples=["physics"])
    parent: AccountName = Field("root", description="account above it, of site_accounts, or root")
    description: str = Field("", pattern=LINE, description="what it is, in words")
    organization: str = Field("", pattern=LINE, description="whose it is, e.g. a department")
    max_tres_per_job: TresMap = Field(
        {}, description="what one job may hold, by TRES", examples=[{"node": 8}]
    )


class Association(Limits):
    """Shares and limits of one user in one account."""

    user: LoginName = Field(description="one of site_users")
    account: AccountName = Field(description="one of site_accounts")
    partition: Annotated[str, Field(pattern=PARTITION_NAME)] | None = Field(
        None, description="one of site_partitions, to hold there only"
    )
