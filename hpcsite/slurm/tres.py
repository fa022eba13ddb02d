"""TRES, what Slurm counts and limits: `cpu`, `mem`, `gres/gpu:h100`. Pure.

slurm.conf(5), AccountingStorageTRES: some always exist under fixed names; the others are a kind
and a name, and of a GRES also a type.
"""

import re
from dataclasses import dataclass

# Always there, without a name …
PLAIN = ("cpu", "mem", "node", "billing", "energy", "vmem", "pages")
# … and those that are a kind and a name.
NAMED = ("gres", "license", "bb", "fs", "ic")
EXAMPLES = "cpu, mem, node, billing, gres/gpu, gres/gpu:h100, license/NAME"

_NAME = re.compile(r"[A-Za-z0-9_.-]+", re.ASCII)
_COUNT = re.compile(r"(\d{1,99})([KMGTP]?)", re.ASCII | re.IGNORECASE)
_MIB = {"": 1, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}


@dataclass(frozen=True)
class Tres:
    """A TRES: its kind, the name of a named kind, and the type of a GRES where it has one."""

    kind: str
    name: str = ""
    type: str = ""

    def __str__(self) -> str:
        name = f"/{self.name}" if self.name else ""
        return f"{self.kind}{name}{':' if self.type else ''}{self.type}"

    @property
    def is_size(self) -> bool:
        """Whether its counts are sizes, which may have a unit behind them."""
        return self.kind in ("mem", "vmem", "bb", "fs")


def read_tres(text: str) -> Tres | None:
    """Read a TRES; None for what Slurm does not know as one."""
    kind, slash, rest = text.partition("/")
    if kind in PLAIN:
        return None if slash else Tres(kind)
    name, colon, type_ = rest.partition(":")
    if kind not in NAMED or not _NAME.fullmatch(name):
        return None
    if colon and (kind != "gres" or not _NAME.fullmatch(type_)):
        return None
    return Tres(kind, name, type_)


def read_count(tres: Tres, value: int | str) -> int | None:
    """Read how many of a TRES, of memory in MiB; None for a unit on what has none.

    -1 lifts a limit. A size below one MiB is rounded up, so that it does not become no memory.
    """
    if isinstance(value, int):
        return value
    found = _COUNT.fullmatch(value)
    if found is None:
        return None
    number, unit = int(found[1]), found[2].upper()
    if not unit:
        return number
    if not tres.is_size:
        return None
    return -(-number // 1024) if unit == "K" else number * _MIB[unit]
