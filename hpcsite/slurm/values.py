"""What Slurm's parsers take as the value of a key. Pure.

Types are those of src/common/parse_config.c: a whole number may be octal (010) or hexadecimal
(0x10), and UNLIMITED or INFINITE in any case. Time limits are read by `seconds_of` of
hpcsite/site/rules/slurm.py; `hpcsite.slurm.keys.meaning` says which keys hold one.
"""

import re

from hpcsite.slurm.keys import find_key, meaning

_TRUE = ("yes", "up", "true", "1")
_FALSE = ("no", "down", "false", "0")
_UNLIMITED = ("unlimited", "infinite")
# More digits than these hold no number of Slurm's, nor one that Python reads.
_WHOLE = re.compile(
    r"\+?(?:0x(?P<hex>[0-9a-f]{1,99})|(?P<octal>0[0-7]{0,99})|(?P<decimal>[1-9]\d{0,99}))", re.I
)
_DECIMAL = re.compile(r"\+?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.ASCII | re.I)
_LARGEST = {"uint16": 2**16 - 1, "uint32": 2**32 - 1, "uint64": 2**64 - 1}
_SIZE = re.compile(r"(?P<number>\d{1,99})(?P<suffix>[KMGTP]?)", re.IGNORECASE | re.ASCII)
# Each suffix is 1024 times the one before.
_BITS = 10


def value_problem(file: str, section: str, name: str, value: str) -> str | None:
    """Say why Slurm does not take the value of a key; None for a good or an unknown one.

    Only types are judged, and what `meaning` knows but a time limit. Raises `KeyError` for a file
    or section that there is not.
    """
    key = find_key(file, section, name)
    if key is None:
        return None
    if key.type == "boolean":
        good = value.lower() in _TRUE + _FALSE
        return None if good else f"{key.name} is yes or no, and not {value!r}"
    if key.type in _LARGEST:
        unit = " of MiB, without a suffix" if meaning(file, section, name) == "memory_mib" else ""
        return _number_problem(key.name, value, _LARGEST[key.type], unit)
    if key.type == "float":
        return None if _is_number(value) else f"{key.name} is a number, and not {value!r}"
    if meaning(file, section, name) == "count" and count_of(value) is None:
        return f"{key.name} is a number, with K, M, G, T or P behind it or not, and not {value!r}"
    return None


def whole_number(text: str) -> int | None:
    """Read a whole number as Slurm's parser does; None for what is none, or less than zero."""
    found = _WHOLE.fullmatch(text)
    if not found:
        return None
    for group, base in (("hex", 16), ("octal", 8)):
        if found[group] is not None:
            return int(found[group], base)
    return int(found["decimal"])


def count_of(text: str) -> int | None:
    """Read a count of gres.conf(5): `4`, `2K` → 2048; None for no count."""
    found = _SIZE.fullmatch(text)
    if not found:
        return None
    power = " KMGTP".index(found["suffix"].upper() or " ")
    return int(found["number"]) << (_BITS * power)


def mib_of(text: str) -> int | None:
    """Read memory as sbatch(1) takes it for --mem: `512`, `64G` → MiB; None for no memory.

    A number alone is in MiB, and KiB are rounded up.
    """
    found = _SIZE.fullmatch(text)
    if not found or found["suffix"].upper() == "P":
        return None
    number = int(found["number"])
    suffix = found["suffix"].upper() or "M"
    if suffix == "K":
        return -(-number >> _BITS)
    return number << (_BITS * "MGT".index(suffix))


def _number_problem(name: str, value: str, largest: int, unit: str) -> str | None:
    if value.lower() in _UNLIMITED:
        return None
    number = whole_number(value)
    if number is None:
        return f"{name} is a whole number{unit}, and not {value!r}"
    return f"{name} is at most {largest}, and not {value}" if number > largest else None


def _is_number(value: str) -> bool:
    if value.lower() in _UNLIMITED:
        return True
    return bool(_DECIMAL.fullmatch(value))
