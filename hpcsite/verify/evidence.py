"""What a check ran and what came back, kept beside its verdict."""

import shlex
import threading
from pathlib import Path

from hpcsite.verify.transport import Answer


class Evidence:
    """Raw output of one check, in a folder of its own below the run's folder."""

    def __init__(self, run_folder: Path, name: str) -> None:
        self._run_folder = run_folder
        self._folder = run_folder / "raw" / name
        self._lock = threading.Lock()
        self._commands: list[str] = []
        self._raw: list[str] = []

    @property
    def commands(self) -> tuple[str, ...]:
        """What was run, each once, in order."""
        return tuple(dict.fromkeys(self._commands))

    @property
    def raw(self) -> tuple[str, ...]:
        """Files that were kept, relative to the run's folder."""
        return tuple(dict.fromkeys(self._raw))

    def record(self, answer: Answer, name: str) -> None:
        """Keep a command's answer; a later one of the same name stands beside it."""
        with self._lock:
            self._commands.append(shlex.join(answer.argv))
            number = len(self._raw) + 1
        self._write(f"{number:02d}-{name}.txt", rendered(answer))

    def replace(self, answer: Answer, name: str) -> None:
        """Keep only the last answer of a name: for what is asked again and again."""
        with self._lock:
            self._commands.append(shlex.join(answer.argv))
        self._write(f"{name}.txt", rendered(answer))

    def keep(self, name: str, text: str) -> None:
        """Keep a text as it is."""
        self._write(name, text)

    def add(self, other: "Evidence") -> None:
        """Count what another one kept as this one's too."""
        with self._lock:
            self._commands.extend(other.commands)
            self._raw.extend(other.raw)

    def _write(self, name: str, text: str) -> None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        path = self._folder / name
        path.write_text(text, encoding="utf-8")
        with self._lock:
            self._raw.append(str(path.relative_to(self._run_folder)))


def rendered(answer: Answer) -> str:
    """One answer as a text: what, where, as whom, how it ended, what it printed."""
    who = answer.user or "the inventory's user"
    return (
        f"$ {shlex.join(answer.argv)}\n"
        f"# on {answer.host} as {who}: exit code {answer.rc} after {answer.seconds:.3f} s\n"
        f"# ---- stdout\n{answer.stdout}\n# ---- stderr\n{answer.stderr}\n"
    )
