"""Pure readers of tools' output: text in, values out; what cannot be read is an error."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")
_UNREADABLE = (
    ValueError,
    KeyError,
    IndexError,
    TypeError,
    AttributeError,
    RecursionError,
    OverflowError,
)


class UnreadableError(Exception):
    """A tool's output is not what it should be; the message says how."""


def reader(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Have a parser raise `UnreadableError` and nothing else, whatever text it is given."""

    @wraps(function)
    def read(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return function(*args, **kwargs)
        except _UNREADABLE as error:
            raise UnreadableError(f"{type(error).__name__}: {error}"[:500]) from error

    return read
