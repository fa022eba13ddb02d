"""What a person writes for a starter inventory → names, addresses, machines.

Each function raises `UsageError`, which says what is wrong with the text.
"""

import os
import re
from collections.abc import Collection, Iterable
from ipaddress import IPv4Address

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from hpcsite.errors import UsageError
from hpcsite.site.groups import FEATURES, IMPLICIT
from hpcsite.site.model.base import LOGIN_NAME
from hpcsite.site.rules.accounts import RESERVED_IDS, SYSTEM
from hpcsite.site.rules.hosts import is_node_name, unusable_address
from hpcsite.site.rules.rdma import is_interface
from hpcsite.site.starter.model import Machine, StarterUser

MAX_NODES = 10_000
VERIFY_USER, VERIFY_ID = "hpctest", 5000


def site_name(text: str) -> str:
    """Check a site's name."""
    if not re.fullmatch(r"[a-z][a-z0-9_-]{0,62}", text):
        raise UsageError(
            f"{text!r} cannot be a site's name",
            hint="use lower-case letters, digits, - and _, beginning with a letter",
        )
    return text


def site_name_of(folder: str) -> str:
    """Make a site's name of a folder's."""
    return re.sub(r"[^a-z0-9_-]+", "-", folder.lower()).lstrip("0123456789_-")[:63] or "site"


def machine(text: str) -> Machine:
    """Read NAME=ADDRESS."""
    name, _, where = text.partition("=")
    return Machine(host_name(name), str(address(where)))


def host_name(name: str) -> str:
    """Check a short host name."""
    if not is_node_name(name):
        raise UsageError(
            f"{name!r} is no short host name",
            hint="letters, digits and hyphens, without a domain, e.g. head=10.0.0.10",
        )
    return name


def address(text: str) -> IPv4Address:
    """Read an address."""
    try:
        return IPv4Address(text)
    except ValueError:
        raise UsageError(
            f"{text!r} is no IPv4 address", hint="write it like this: head=10.0.0.10"
        ) from None


def usable_address(text: str) -> IPv4Address:
    """Read an address that a host of a site can have."""
    found = address(text)
    if reason := unusable_address(found):
        raise UsageError(f"{found} is {reason}", hint="write that by which other hosts reach it")
    return found


def node_set(text: str) -> list[str]:
    """Expand a node set; its names are not looked at."""
    try:
        nodes = NodeSet(text, resolver=RESOLVER_NOGROUP)
    except NodeSetException as error:
        raise UsageError(str(error), hint="e.g. 'gpu[01-04]'") from error
    if not 0 < len(nodes) <= MAX_NODES:
        raise UsageError(f"{len(nodes)} nodes", hint=f"name 1 to {MAX_NODES}")
    return [str(node) for node in nodes]


def node_names(text: str) -> list[str]:
    """Expand a node set of short host names."""
    return [host_name(name) for name in node_set(text)]


def addressed(names: list[str], first: str) -> tuple[Machine, ...]:
    """Give machines the addresses that follow the first one."""
    begin = address(first)
    try:
        return tuple(Machine(name, str(begin + number)) for number, name in enumerate(names))
    except ValueError:
        raise UsageError(
            f"{len(names)} addresses do not follow {first}", hint="begin lower"
        ) from None


def interface(text: str) -> str:
    """Check the name of a network interface."""
    if not is_interface(text):
        raise UsageError(f"{text!r} is no network interface's name", hint="e.g. eth1")
    return text


def login_name(text: str) -> str:
    """Check who logs in; a directory service's names may have more in them than hpcsite's own."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.@\\-]*", text):
        raise UsageError(f"{text!r} is no login name", hint="e.g. root or admin")
    return text


def stem(names: Iterable[str]) -> str:
    """Give what names have in common before a number: gpu01, gpu02 → gpu; empty for nothing."""
    names = list(names)
    stems = {re.sub(r"[^A-Za-z]+$", "", name) for name in names}
    common = stems.pop() if len(stems) == 1 else os.path.commonprefix(names)  # noqa: RUF071 - no paths
    ends = all(not name[len(common) : len(common) + 1].isalpha() for name in names)
    found = re.sub(r"[^a-z0-9]+", "_", re.sub(r"[^A-Za-z]+$", "", common).lower())
    return found if ends and found and found[0].isalpha() else ""


def group_name(names: Iterable[str], taken: Collection[str] = (), otherwise: str = "") -> str:
    """Name a node group after its nodes; `otherwise` where they have nothing in common."""
    names = list(names)
    used = {*FEATURES, *IMPLICIT, *names, *taken, "default"}
    first = stem(names)
    if first and first not in used:
        return first
    # What stands for an odd one of gpu01, gpu02, … is to be seen in its name.
    other = first if first in taken else re.sub(r"[^a-z0-9]+", "_", otherwise) or "compute"
    choices = [other, *(f"{other}_{number}" for number in range(2, len(used) + 3))]
    return next(choice for choice in choices if choice not in used)


def users(text: str) -> tuple[StarterUser, ...]:
    """Read NAME[=UID],…; ids that are left out follow that of the verification user."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    given: dict[str, int | None] = {}
    for part in parts:
        name, has_id, number = part.partition("=")
        if not re.fullmatch(LOGIN_NAME, name) or name in {VERIFY_USER, *SYSTEM, *given}:
            raise UsageError(
                f"{name!r} cannot be a further user's name",
                hint="each once, in lower-case letters, digits, - and _; none of the system's, nor "
                f"{VERIFY_USER}",
            )
        given[name] = _user_id(number) if has_id else None
    taken = {number for number in given.values() if number is not None} | {VERIFY_ID}
    free = (number for number in range(VERIFY_ID + 1, 60_000) if number not in taken)
    return tuple(
        StarterUser(name, next(free) if number is None else number)
        for name, number in given.items()
    )


def _user_id(text: str) -> int:
    number = int(text) if re.fullmatch("[0-9]{1,10}", text) else 0
    if not 1000 <= number < 2**31 or number in RESERVED_IDS or number == VERIFY_ID:
        raise UsageError(
            f"{text!r} cannot be a further user's id",
            hint=f"1000 or more, not {VERIFY_ID}, and none of 60000 to 65535: e.g. alice=5001",
        )
    return number
