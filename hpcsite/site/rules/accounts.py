"""Users and Unix groups: one id each, everywhere the same; and the rules of Slurm's accounts."""

import re
from collections.abc import Iterator

from hpcsite.errors import Problem
from hpcsite.site.draft import Draft
from hpcsite.site.model import User
from hpcsite.site.names import did_you_mean
from hpcsite.site.rules import associations, shares, slurm_accounts
from hpcsite.site.sources import KeyPath

# Debian policy 9.2.2 keeps 60000-64999 for packages (slurm is 64030); systemd's documentation of
# UIDs and GIDs keeps 60001-65533 for homed and dynamic users; 65534 and 65535 are nobody and -1.
RESERVED_IDS = range(60000, 65536)
SYSTEM = frozenset(
    (
        *("root", "daemon", "bin", "sys", "nobody", "nogroup", "sshd", "messagebus", "_chrony"),
        *("chrony", "munge", "slurm", "mysql", "mariadb", "sudo", "wheel", "adm", "docker"),
        *("video", "render", "shadow", "tty", "disk", "users"),
    )
)
_KEY = re.compile(r"(ssh-|ecdsa-sha2-|sk-ssh-|sk-ecdsa-)\S+ [A-Za-z0-9+/=]+( .*)?")


def names_are_distinct(draft: Draft) -> Iterator[Problem]:
    """No user and no group is described twice, and none is a system account."""
    for key, what in (("users", "user"), ("groups", "group")):
        seen: set[str] = set()
        for number, entry in draft.entries(key, "name"):
            path: KeyPath = (f"site_{key}", number, "name")
            if entry.name in seen:
                yield draft.problem(
                    f"the {what} {entry.name} is described twice",
                    path,
                    "remove one of the two",
                    code="HPC1501",
                )
            elif entry.name in SYSTEM:
                yield draft.problem(
                    f"{entry.name} is a {what} of the operating system or of Slurm",
                    path,
                    "choose another name: hpcsite manages people's accounts only",
                    code="HPC1502",
                )
            seen.add(entry.name)


def ids_are_distinct(draft: Draft) -> Iterator[Problem]:
    """Each uid and gid is used once, and is nobody else's."""
    for key, name in (("users", "uid"), ("groups", "gid")):
        seen: dict[int, str] = {}
        for number, entry in draft.entries(key, name):
            value, called = getattr(entry, name), draft.called(key, number)
            path: KeyPath = (f"site_{key}", number, name)
            if value in RESERVED_IDS:
                yield draft.problem(
                    f"the {name} {value} of {called} is reserved: "
                    "distributions and systemd use 60000 to 65535",
                    path,
                    "choose one from 1000 to 59999",
                    code="HPC1503",
                )
            first = seen.setdefault(value, called)
            if first != called:
                yield draft.problem(
                    f"{called} has the same {name} as {first}: {value}",
                    path,
                    f"give each its own {name}",
                    code="HPC1504",
                )


def users_have_groups(draft: Draft) -> Iterator[Problem]:
    """Check that a user's groups are described, and stay while the user does."""
    names = draft.names("groups")
    if names is None:
        return
    absent = {group.name for _, group in draft.entries("groups") if group.state == "absent"}
    for number, user in draft.entries("users", "state"):
        if user.state == "present":
            called = draft.called("users", number)
            for path, group in _groups_of(draft, user, number):
                if group not in names:
                    yield draft.problem(
                        f"the user {called} is in an unknown group {group}",
                        path,
                        did_you_mean(group, names, f"add {group} to site_groups"),
                        code="HPC1505",
                    )
                elif group in absent:
                    yield draft.problem(
                        f"the user {called} is in the group {group}, which is to be absent",
                        path,
                        "keep the group, or take the user out of it",
                        code="HPC1506",
                    )


def _groups_of(draft: Draft, user: User, number: int) -> Iterator[tuple[KeyPath, str]]:
    if user.group is not None:
        yield ("site_users", number, "group"), user.group
    path: KeyPath = ("site_users", number, "groups")
    for index, group in draft.numbered(path, user.groups):
        yield (*path, index), group


def ssh_keys_are_public(draft: Draft) -> Iterator[Problem]:
    """Each key is one line of an authorized_keys file; never a private key."""
    for number, user in draft.entries("users"):
        called = draft.called("users", number)
        keys: KeyPath = ("site_users", number, "ssh_keys")
        for index, key in draft.numbered(keys, user.ssh_keys):
            path: KeyPath = (*keys, index)
            if "PRIVATE KEY" in key:
                yield draft.problem(
                    f"this is a private key of {called}",
                    path,
                    "put the .pub file's line here, and replace the key pair: it is no secret now",
                    code="HPC1507",
                )
            elif not _KEY.fullmatch(key.strip()):
                yield draft.problem(
                    f"this is no public key of {called}",
                    path,
                    "one line as in a .pub file: ssh-ed25519 AAAA… name",
                    code="HPC1508",
                )


def verify_user_is_present(draft: Draft) -> Iterator[Problem]:
    """Check that the user who runs verification exists on the nodes."""
    name, names = draft.keys.verify_user, draft.names("users")
    if name is None or names is None:
        return
    absent = {user.name for _, user in draft.entries("users") if user.state == "absent"}
    if name not in names or name in absent:
        present = [user for user in names if user not in absent]
        yield draft.problem(
            f"site_verify_user {name} is not among the users present",
            ("site_verify_user",),
            did_you_mean(name, present, f"add {name} to site_users"),
            code="HPC1509",
        )


RULES = (
    names_are_distinct,
    ids_are_distinct,
    users_have_groups,
    ssh_keys_are_public,
    verify_user_is_present,
    *slurm_accounts.RULES,
    *associations.RULES,
    *shares.RULES,
)
