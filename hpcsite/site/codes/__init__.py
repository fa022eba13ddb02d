"""Every kind of mistake in a site description: its number, what it means, and what to do.

The texts are the YAML files beside this module, one an area. A number is never given to another
mistake: what no version reports any more stays here, marked `retired`.
"""

import difflib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

_FOLDER = Path(__file__).parent
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
PREFIX = "HPC"


@dataclass(frozen=True)
class Code:
    """A kind of mistake. `warning`: it never keeps a site from being used."""

    number: str
    title: str
    cause: str
    remedy: str
    warning: bool = False
    example: str = ""
    retired: bool = False

    @property
    def severity(self) -> str:
        """`warning` or `error`."""
        return "warning" if self.warning else "error"

    @property
    def area(self) -> str:
        """First two digits of the number: a key of `AREAS`."""
        return self.number.removeprefix(PREFIX)[:2]


def registry_files() -> list[Path]:
    """List the files of the registry, in the order of their areas."""
    return sorted(_FOLDER.glob("*.yml"))


@cache
def _documents() -> tuple[dict[str, Any], ...]:
    # A SafeLoader either way; its C twin is ten times as fast.
    texts = (path.read_text(encoding="utf-8") for path in registry_files())
    return tuple(yaml.load(text, Loader=_LOADER) for text in texts)  # noqa: S506


def _codes() -> dict[str, Code]:
    return {
        number: Code(number=number, **entry)
        for document in _documents()
        for number, entry in document["codes"].items()
    }


# First two digits → what the codes of the area are about.
AREAS: dict[str, str] = {document["area"]: document["title"] for document in _documents()}
CODES: dict[str, Code] = _codes()


def nearest_code(text: str) -> str | None:
    """Find the code that a mistyped one was probably meant to be.

    Of those that are like it, the one that begins most like it: near numbers are near mistakes.
    """
    wanted = text.upper()
    like = difflib.get_close_matches(wanted, CODES, n=len(CODES))
    beginnings = (wanted[:length] for length in range(len(wanted), -1, -1))
    return next((code for begin in beginnings for code in like if code.startswith(begin)), None)
