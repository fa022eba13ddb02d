"""Errors that a user can act on, and the exit codes they end in.

Everything that hpcsite raises on purpose is a `HpcsiteError`. `hpcsite.cli` is the only place that
catches them; it prints what is wrong and where, a blank line, and a hint. Any other exception is a
bug and ends in `ExitCode.BUG`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path


class ExitCode(IntEnum):
    """Exit codes of every command; documented in docs/exit-codes.md."""

    OK = 0
    FAILED = 1
    USAGE = 2
    INVALID_SITE = 3
    COULD_NOT_RUN = 4
    BUG = 70
    INTERRUPTED = 130


@dataclass(frozen=True, order=True)
class Location:
    """A place in a file; `line` counts from 1, 0 means the file as a whole."""

    path: Path
    line: int = 0

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.line else str(self.path)


@dataclass(frozen=True)
class Problem:
    """One mistake in a site description: what is wrong, where, and what to do.

    `code` names the kind of mistake (`hpcsite.site.codes`); it is empty for what is said of
    something else than a site description. `acknowledged` is the site's reason to accept a
    warning. `host` is the host that an element of `key` belongs to, where one mistake may be that
    of many hosts: it makes no difference between two problems.
    """

    message: str
    where: Location | None = None
    hint: str = ""
    key: str = ""
    code: str = ""
    acknowledged: str = ""
    host: str = field(default="", compare=False)

    def __str__(self) -> str:
        code = f" [{self.code}]" if self.code else ""
        head = f"{self.where}: {self.message}{code}" if self.where else f"{self.message}{code}"
        return f"{head}\n\nhint: {self.hint}" if self.hint else head


class HpcsiteError(Exception):
    """Something a user can act on. `exit_code` is what the command ends with."""

    exit_code: ExitCode = ExitCode.COULD_NOT_RUN

    def __init__(self, message: str, *, hint: str = "", where: Location | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.where = where

    @property
    def problems(self) -> list[Problem]:
        """All that is to be said, in the order of printing."""
        return [Problem(self.message, self.where, self.hint)]


class CouldNotRunError(HpcsiteError):
    """A tool, a host or a file that is needed could not be used."""


class UsageError(HpcsiteError):
    """The command was called with something that cannot be meant."""

    exit_code = ExitCode.USAGE


class FailedError(HpcsiteError):
    """A host or a check failed."""

    exit_code = ExitCode.FAILED


class InvalidSiteError(HpcsiteError):
    """The site description is wrong; carries every mistake found, not only the first.

    `warnings` are those that were found beside the mistakes.
    """

    exit_code = ExitCode.INVALID_SITE

    def __init__(self, problems: list[Problem], warnings: Sequence[Problem] = ()) -> None:
        count = len(problems)
        super().__init__(f"the site description has {count} error{'s' if count != 1 else ''}")
        self._problems = problems
        self.warnings = tuple(warnings)

    @property
    def problems(self) -> list[Problem]:
        """The mistakes, sorted by where they stand."""
        return self._problems
