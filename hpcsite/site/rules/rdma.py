"""RDMA: what each mode needs is said, and is said without templates."""

import re
from collections.abc import Iterator

from hpcsite.errors import Problem
from hpcsite.site.draft import Draft
from hpcsite.site.names import fold
from hpcsite.site.rdma import DEFAULT_MODE, KEYS

# Linux: IFNAMSIZ is 16 with the end; IB_DEVICE_NAME_MAX is 64. A blank, a slash or a quote would
# leave the unit's line.
_INTERFACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,14}")
_DEVICE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}")


def is_interface(name: str) -> bool:
    """Whether a name can be a network interface's."""
    return _INTERFACE.fullmatch(name) is not None


def interface_is_given(draft: Draft) -> Iterator[Problem]:
    """RoCE, in hardware or software, names the interface that it is on."""
    without = [
        host
        for host in _hosts(draft)
        if _mode(draft, host) in ("roce", "soft_roce") and not _value(draft, host, "rdma_interface")
    ]
    for where, hosts in draft.by_line(without, "rdma_mode"):
        yield Problem(
            f"rdma_mode is {_mode(draft, hosts[0])}, but rdma_interface is not set: {fold(hosts)}",
            where,
            "name the network interface of the fabric, e.g. `rdma_interface: eth1`; `ip link` on "
            "the host lists them",
            "rdma_mode",
            code="HPC1320",
        )


def names_are_valid(draft: Draft) -> Iterator[Problem]:
    """Names of interfaces and devices are such as Linux takes."""
    for key, form, kind, code in (
        ("rdma_interface", _INTERFACE, "a network interface", "HPC1321"),
        ("rdma_soft_device", _DEVICE, "an RDMA device", "HPC1322"),
    ):
        wrong = [
            host
            for host in _hosts(draft)
            if isinstance(value := _value(draft, host, key), str)
            and value
            and not _is_template(value)
            and not form.fullmatch(value)
        ]
        for where, hosts in draft.by_line(wrong, key):
            value = _value(draft, hosts[0], key)
            yield Problem(
                f"{value} is no name of {kind}",
                where,
                "letters, digits, _, - and ., at most 15 of them for an interface",
                key,
                code=code,
            )


def keys_are_literal(draft: Draft) -> Iterator[Problem]:
    """Verification reads these keys without running Ansible on a host."""
    for key in KEYS:
        wrong = [host for host in _hosts(draft) if _is_template(_value(draft, host, key))]
        for where, hosts in draft.by_line(wrong, key):
            yield Problem(
                f"{key} holds a template; it must be literal",
                where,
                f"write the value itself, for {fold(hosts)}: `hpcsite verify` reads it too",
                key,
                code="HPC1323",
            )


def _hosts(draft: Draft) -> list[str]:
    members = draft.inventory.groups.get("rdma", frozenset())
    return [host for host in draft.inventory.hosts if host in members]


def _value(draft: Draft, host: str, key: str) -> object:
    return draft.inventory.hosts[host].get(key)


def _mode(draft: Draft, host: str) -> object:
    return _value(draft, host, "rdma_mode") or DEFAULT_MODE


def _is_template(value: object) -> bool:
    return "{{" in str(value) or "{%" in str(value)


RULES = (interface_is_given, names_are_valid, keys_are_literal)
