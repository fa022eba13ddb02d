"""Asking hosts over ssh what they have, and making node groups of those that are alike.

Nothing is installed on a host, and nothing is changed: one shell program reads what the kernel and
the vendor's tools say (`ask`, `probe.sh`), a parser makes facts of it (`parse`), alike hosts are
found (`alike`), and what they are is described (`describe`) and becomes what a starter inventory is
written for (`propose`).
"""

from hpcsite.discover.alike import differences
from hpcsite.discover.ask import Refusal, Ssh, ask_all
from hpcsite.discover.facts import Facts
from hpcsite.discover.propose import Proposal, Roles, node_names, propose

__all__ = [
    "Facts",
    "Proposal",
    "Refusal",
    "Roles",
    "Ssh",
    "ask_all",
    "differences",
    "node_names",
    "propose",
]
