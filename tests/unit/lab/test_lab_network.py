"""The nftables rules as text."""

import json
from ipaddress import IPv4Network

import pytest

from hpcsite.lab.network import parse_forwarding, ruleset


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


@pytest.mark.parametrize("policy", ["accept", "drop"])
def test_a_firewall_that_drops_what_is_forwarded_is_named(policy: str) -> None:
    chain = {"family": "ip", "table": "filter", "name": "FORWARD", "hook": "forward"}
    chains = json.dumps({"nftables": [{"metainfo": {}}, {"chain": {**chain, "policy": policy}}]})
    problem = parse_forwarding(chains, "hpc-lab")
    if policy == "accept":
        assert problem is None
    else:
        assert problem is not None
        assert "table filter, chain FORWARD" in problem.message
        assert "-i hpc-lab -j ACCEPT" in problem.hint
    assert parse_forwarding("", "hpc-lab") is None
