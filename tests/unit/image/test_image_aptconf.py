"""What a lab takes from the host's apt."""

from hpcsite.image.aptconf import HostApt, parse_host_apt

CONFIG = """\
Acquire "";
Acquire::http "";
Acquire::http::Proxy "http://127.0.0.1:3142/";
Acquire::Check-Valid-Until "false";
APT::Architectures:: "amd64";
"""
TARGETS = """\
||cdrom://disc
Debian|Debian|https://mirror.example/debian/
Debian|Debian|https://second.example/debian/
Debian|Debian-Security|https://mirror.example/debian-security/
Other|Debian|https://third.example/
"""


def test_a_host_that_has_nothing_gives_nothing() -> None:
    assert parse_host_apt("", "") == HostApt()
    assert HostApt().sources("trixie") == ()
    assert HostApt().machine_proxy("10.213.0.1") == ""


def test_the_hosts_mirrors_serve_the_labs_release() -> None:
    lines = parse_host_apt(CONFIG, TARGETS).sources("trixie")
    assert [line.split("] ")[1] for line in lines] == [
        "https://mirror.example/debian/ trixie main",
        "https://mirror.example/debian/ trixie-updates main",
        "https://mirror.example/debian-security/ trixie-security main",
    ]
    assert all("signed-by=" in line for line in lines)


def test_a_frozen_mirrors_options_are_kept() -> None:
    assert parse_host_apt(CONFIG, TARGETS).options == ('Acquire::Check-Valid-Until "false"',)


def test_a_proxy_on_the_hosts_loopback_is_reached_at_the_gateway() -> None:
    apt = parse_host_apt(CONFIG, TARGETS)
    assert apt.proxy == "http://127.0.0.1:3142/"
    assert apt.machine_proxy("10.213.0.1") == "http://10.213.0.1:3142/"
    assert HostApt(proxy="http://proxy.example:8080").machine_proxy("10.213.0.1") == (
        "http://proxy.example:8080"
    )
