"""Recorded answers of hosts, and hosts made of them."""

from dataclasses import replace
from pathlib import Path

from hpcsite.discover import Facts
from hpcsite.discover.parse import parse

RECORDED = Path(__file__).parent / "recorded"
_SUBNETS = {"dgx01": 1, "n1": 3, "cpu01": 5}


def recorded(name: str) -> str:
    return (RECORDED / f"{name}.txt").read_text(encoding="utf-8")


def facts(name: str) -> Facts:
    found = parse(name, recorded(name))
    assert found is not None
    return found


def copy(name: str, number: int, **changes: object) -> Facts:
    """Give another host that is built as the recorded one, of the same family."""
    original = facts(name)
    new = f"{original.hostname.rstrip('0123456789')}{number:02}"
    address = f"10.20.{_SUBNETS[name]}.{number}"
    interface = replace(original.interfaces[0], addresses=(address,))
    made = replace(
        original, target=address, hostname=new, ssh_address=address, interfaces=(interface,)
    )
    return replace(made, **changes)  # type: ignore[arg-type]
