"""The nftables rules as text."""

from ipaddress import IPv4Network

from hpcsite.lab.network import ruleset


def test_the_ruleset_replaces_only_its_own_table_and_translates_only_what_leaves() -> None:
    assert ruleset("hpcsite_lab", "hpc-lab", IPv4Network("10.213.0.0/24")) == (
        "table ip hpcsite_lab\n"
        "delete table ip hpcsite_lab\n"
        "table ip hpcsite_lab {\n"
        "  chain postrouting {\n"
        "    type nat hook postrouting priority srcnat; policy accept;\n"
        '    ip saddr 10.213.0.0/24 oifname != "hpc-lab" masquerade\n'
        "  }\n"
        "}\n"
    )
