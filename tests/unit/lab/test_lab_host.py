"""Subnets that collide, resolvers that machines can use, what a full disk says."""

import errno
import json
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from hpcsite.errors import CouldNotRunError
from hpcsite.image import disk
from hpcsite.lab import host

ADDRESSES = json.dumps(
    [
        {"ifname": "lo", "addr_info": [{"local": "127.0.0.1", "prefixlen": 8}]},
        {"ifname": "eth0", "addr_info": [{"local": "192.0.2.7", "prefixlen": 24}]},
        {"ifname": "hpc-lab", "addr_info": [{"local": "10.213.0.1", "prefixlen": 24}]},
        {},
    ]
)
ROUTES = json.dumps(
    [
        {"dst": "default", "gateway": "192.0.2.1", "dev": "eth0"},
        {"dst": "10.0.0.0/9", "dev": "wg0"},
        {"dst": "198.51.100.9", "dev": "tun0"},
        {"type": "blackhole", "dst": "10.255.0.0/16"},
        {"type": "broadcast", "dst": "192.0.2.255", "dev": "eth0"},
        {"dst": "0.0.0.0/1", "dev": "tun0"},
    ]
)


def check(network: str, bridge: str = "hpc-other") -> None:
    host.require_free(IPv4Network(network), bridge, host.parse_occupied(ADDRESSES, ROUTES))


@pytest.mark.parametrize(
    ("network", "name"),
    [
        ("192.0.2.0/28", "eth0"),
        ("10.5.0.0/24", "wg0"),
        ("198.51.100.0/24", "tun0"),
        ("10.213.0.128/25", "the lab on hpc-lab"),
    ],
)
def test_a_network_in_use_is_refused_by_name(network: str, name: str) -> None:
    with pytest.raises(CouldNotRunError, match=name) as caught:
        check(network)
    assert "site_lab" in caught.value.hint


def test_a_free_network_and_the_labs_own_are_accepted() -> None:
    check("10.214.0.0/24")
    check("10.213.0.0/24", bridge="hpc-lab")


def test_loopback_and_link_local_resolvers_are_left_out() -> None:
    text = (
        "# comment\nnameserver 127.0.0.53\nnameserver 192.0.2.1\nnameserver fe80::1%eth0\n"
        "nameserver 2001:db8::1\nnameserver nonsense\nsearch example\nnameserver\n"
    )
    assert host.parse_resolvers(text) == ["192.0.2.1", "2001:db8::1"]


def test_too_little_space_is_said_in_mib(tmp_path: Path) -> None:
    with pytest.raises(CouldNotRunError, match=r"MiB free, \d+ MiB are needed to build"):
        disk.require_space(tmp_path / "not" / "yet", 1 << 40, "to build")


def test_a_full_disk_is_an_error_and_not_a_bug() -> None:
    with pytest.raises(CouldNotRunError, match="/x: No space") as caught, disk.disk_errors():
        raise OSError(errno.ENOSPC, "No space left on device", "/x")
    assert "make room" in caught.value.hint
    with pytest.raises(FileNotFoundError), disk.disk_errors():
        raise FileNotFoundError(errno.ENOENT, "No such file", "/y")
