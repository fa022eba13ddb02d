"""What a node says of its RDMA ports, and the address that RoCE is to use."""

from ipaddress import IPv6Address

import pytest

from hpcsite.site.rdma import Rdma
from hpcsite.verify.parsers import UnreadableError
from hpcsite.verify.parsers.rdma_links import Gid, Port, read_links
from tests.unit.verify.fakeslurm import fixture

UP, NONE = fixture("rdma/links.txt"), fixture("rdma/links-none.txt")
SOFT = Rdma("soft_roce", "eth1", ("rxe0",))
LINK_LOCAL, MAPPED = "fe80::5054:ff:fe00:101", "::ffff:10.61.4.21"


def test_a_port_is_read_whole() -> None:
    links = read_links(UP)
    (port,) = links.ports
    assert (port.name, port.up, port.rate_gbit_s, port.layer) == ("rxe0:1", True, 2.5, "Ethernet")
    assert [gid.address for gid in port.gids] == [IPv6Address(LINK_LOCAL), IPv6Address(MAPPED)]
    assert (links.memlock, links.seen, links.asked_verbs) == (
        "unlimited",
        frozenset(["rxe0"]),
        True,
    )
    assert links.link_states == {"rxe0:1": "ACTIVE"}
    assert links.meant(SOFT) == (port,)


def test_a_node_without_devices_says_so() -> None:
    links = read_links(NONE)
    assert (links.ports, links.seen, links.complaint) == ((), frozenset(), "No IB devices found")
    assert links.meant(SOFT) == ()


def test_a_node_without_the_tools_is_read_too() -> None:
    links = read_links(UP.partition("--- rdma")[0])
    assert (len(links.ports), links.asked_verbs, links.link_states) == (1, False, {})


@pytest.mark.parametrize("text", ["", "port\trxe0\n", "memlock\t64\nport\trxe0\tone\ta\tb\tc\td\n"])
def test_what_is_cut_off_is_an_error(text: str) -> None:
    with pytest.raises(UnreadableError):
        read_links(text)


def port(*gids: tuple[int, str, str, str]) -> Port:
    made = tuple(Gid(index, kind, IPv6Address(a), on) for index, kind, a, on in gids)
    return Port("mlx5_0", 1, "ACTIVE", "LinkUp", 100.0, "Ethernet", made)


@pytest.mark.parametrize(
    ("gids", "expected"),
    [
        # As an adapter lists them: each address as RoCE v1 and v2.
        (
            [
                (0, "IB/RoCE v1", LINK_LOCAL, "eth1"),
                (1, "RoCE v2", LINK_LOCAL, "eth1"),
                (2, "IB/RoCE v1", MAPPED, "eth1"),
                (3, "RoCE v2", MAPPED, "eth1"),
            ],
            3,
        ),
        # A VLAN on the same port is another interface.
        ([(0, "RoCE v2", MAPPED, "eth1.100"), (5, "RoCE v2", "::ffff:10.0.0.9", "eth1")], 5),
        ([(1, "RoCE v2", LINK_LOCAL, "eth1"), (4, "RoCE v2", "fd00::1", "eth1")], 4),
        ([(1, "RoCE v2", LINK_LOCAL, "eth1")], 1),
        ([(0, "IB/RoCE v1", MAPPED, "eth1")], None),
        ([], None),
    ],
)
def test_the_gid_is_that_of_the_interface_s_ipv4_address(
    gids: list[tuple[int, str, str, str]], expected: int | None
) -> None:
    assert port(*gids).gid_index("eth1") == expected


def test_without_names_the_ports_of_the_mode_are_meant() -> None:
    text = (
        "memlock\tunlimited\n"
        "port\tmlx5_0\t1\t4: ACTIVE\t5: LinkUp\t400 Gb/sec (4X NDR)\tInfiniBand\n"
        "port\tmlx5_1\t1\t1: DOWN\t3: Disabled\t100 Gb/sec (4X EDR)\tEthernet\n"
        f"gid\tmlx5_1\t1\t3\tRoCE v2\t{MAPPED}\teth1\n"
    )
    links = read_links(text)
    assert [p.device for p in links.meant(Rdma("infiniband"))] == ["mlx5_0"]
    (roce,) = links.meant(Rdma("roce", "eth1"))
    assert (roce.device, roce.up) == ("mlx5_1", False)
    assert links.meant(Rdma("roce", "eth2")) == ()
