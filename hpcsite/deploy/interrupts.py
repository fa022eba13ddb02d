"""Ctrl-C, SIGTERM and SIGHUP while a deploy runs: asked to end first, forced the second time."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def on_interrupt(action: Callable[[], None]) -> Iterator[None]:
    """Call `action` for each such signal instead of what it does otherwise. Main thread only."""

    def handle(_number: int, _frame: FrameType | None) -> None:
        action()

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
