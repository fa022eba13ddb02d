"""Keeps secrets out of everything that a plan shows or stores.

Three ways, each of which would do for what hpcsite's own roles write: files that hold secrets are
not shown at all, lines that set a password are shown without it, and the site's own secrets are
taken out wherever they stand.
"""

import base64
import re
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

MASK = "********"
# Files whose content is not shown. `*` also stands for folders.
SECRET_FILES = (
    "*/.my.cnf",
    "*/.ssh/id_*",
    "*/gshadow*",
    "*/jwt*",
    "*/secrets/*",
    "*/shadow*",
    "*/slurmdbd.conf*",
    "*.key",
    "*.keys",
    "*.pem",
    "*munge*key*",
    "*passwd_file*",
    "*password*",
)
# `StoragePass=…`, `password: …`, `api_token = …`, also behind the marks of a diff.
_SETTING = re.compile(
    r"(?P<key>\b[\w.-]{0,64}(?:pass|passwd|password|passphrase|secret|token|credentials?"
    r"|(?:api|private|secret|access)[_-]?key)[\w-]{0,64}[\"']?[ \t]*[:=][ \t]*)(?P<value>\S.*)$",
    re.IGNORECASE | re.MULTILINE,
)
# One of these is in each name that the pattern finds: quicker to look for by far.
_WORDS = ("pass", "secret", "token", "credential", "key")
# Shorter ones would mask words that happen to be the same.
_SHORTEST = 6
_LARGEST_BYTES = 65536


class Masker:
    """Knows the site's secrets once it is told where they are."""

    def __init__(self) -> None:
        self._needles: list[str] = []

    def learn(self, folder: Path) -> None:
        """Take in the files of a folder of secrets; one that is missing has none."""
        if not folder.is_dir():
            return
        found = set(self._needles)
        for file in folder.iterdir():
            if file.is_file() and file.stat().st_size <= _LARGEST_BYTES:
                found |= _spellings(file.read_bytes())
        # The longest first: one may be a part of another.
        self._needles = sorted(found, key=len, reverse=True)

    def is_secret(self, path: str) -> bool:
        """Whether a file's content is not for showing."""
        return any(fnmatch(path.lower(), pattern) for pattern in SECRET_FILES)

    def text(self, text: str) -> str:
        """Text without secrets."""
        for needle in self._needles:
            text = text.replace(needle, MASK)
        lower = text.lower()
        if not any(word in lower for word in _WORDS):
            return text
        return "\n".join(_masked_setting(line) for line in text.split("\n"))

    def value(self, value: Any) -> Any:  # noqa: ANN401 - results hold whatever a module returned
        """Take secrets out of a result, containers included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self.value(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.value(inner) for inner in value]
        return value


def _masked_setting(line: str) -> str:
    lower = line.lower()
    if not any(word in lower for word in _WORDS):
        return line
    return _SETTING.sub(rf"\g<key>{MASK}", line)


def _spellings(content: bytes) -> set[str]:
    """Find how a secret can stand in a text: a line of it, in base64, or in hexadecimal."""
    bare = content.strip()
    found = {form(raw) for raw in (content, bare) for form in (_base64, bytes.hex)}
    text = content.decode("utf-8", errors="replace")
    if "\ufffd" not in text:
        found |= {line.strip() for line in text.splitlines()}
        # slurmdbd.conf's and JSON's own ways to write it.
        found |= {line.replace("\\", "\\\\").replace("#", "\\#") for line in set(found)}
    return {needle for needle in found if len(needle) >= _SHORTEST}


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
