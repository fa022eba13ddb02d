"""Golden output of tools, and what hypothesis makes of it for their parsers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpcsite.verify.parsers import UnreadableError

GOLDEN = Path(__file__).parents[2] / "golden" / "tools"
_MESSAGE_MOST = 1000
_FEW = settings(
    max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None
)
_JUNK = st.sampled_from(
    ["", "nan", "-1", "1e999", "{", "}", "null", "[", ":", "\x1b[4m", "\n", "N/A", "0", "9" * 400]
)


def golden(tool: str, name: str) -> str:
    """Text of one golden case."""
    return (GOLDEN / tool / name).read_text("utf-8")


def goldens(tool: str) -> list[str]:
    """Names of all golden cases of a tool."""
    return sorted(path.name for path in (GOLDEN / tool).iterdir())


def raises_nothing_else(read: Callable[[str], Any], tool: str) -> None:
    """Fail if a parser raises another error for any text, or for a mutated golden case."""

    def attempt(text: str) -> None:
        try:
            read(text)
        except UnreadableError as error:
            if len(str(error)) > _MESSAGE_MOST:
                pytest.fail(f"a message of {len(str(error))} characters")
        except Exception as error:  # noqa: BLE001 - this is what must not be
            pytest.fail(f"{type(error).__name__}: {error} of {text[:500]!r}")

    texts = [golden(tool, name) for name in goldens(tool)]

    @_FEW
    @given(st.text(max_size=400))
    def any_text(text: str) -> None:
        attempt(text)

    @_FEW
    @given(st.sampled_from(texts), st.floats(0, 1), st.floats(0, 0.2), _JUNK)
    def mutated(text: str, begin: float, length: float, junk: str) -> None:
        at = int(begin * len(text))
        attempt(text[:at] + junk + text[at + int(length * len(text)) :])

    any_text()
    mutated()
