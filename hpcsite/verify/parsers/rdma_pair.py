"""What `programs/rdma_pair.sh` says under `srun --label`: two sides, each with its tests."""

import re
from dataclasses import dataclass

_LABEL = re.compile(r"^\s*(\d+): ?(.*)$")
_TEST = re.compile(r"^@ begin (\d+) (\S+)\n(.*?)(?:^@ end \1 (\d+)$|\Z)", re.MULTILINE | re.DOTALL)
_COMPLAINT = re.compile(r"not found|unable|couldn't|fail|error|invalid|no such", re.IGNORECASE)
TIMED_OUT = 124


@dataclass(frozen=True)
class Test:
    """One test of one side; `rc` is None for one that was cut off."""

    tool: str
    text: str
    rc: int | None

    @property
    def complaint(self) -> str:
        """One line for a person: the first complaint, else how it ended."""
        lines = [line.strip() for line in self.text.splitlines()]
        said = next((line for line in lines if _COMPLAINT.search(line)), "")
        if said:
            return said
        if self.rc is None:
            return "it was cut off"
        return "no traffic in time" if self.rc == TIMED_OUT else f"exit code {self.rc}"


@dataclass(frozen=True)
class Side:
    """What one node said. `missing` is a tool that it does not have."""

    node: str
    listens: bool
    missing: str = ""
    tests: tuple[Test, ...] = ()


def read_sides(text: str) -> dict[str, Side]:
    """Read the output of both tasks, by node; a side that never began is missing."""
    tasks: dict[str, list[str]] = {}
    for line in text.splitlines():
        if found := _LABEL.match(line):
            tasks.setdefault(found[1], []).append(found[2])
    sides = (_side("\n".join(lines)) for lines in tasks.values())
    return {side.node: side for side in sides if side}


def _side(text: str) -> Side | None:
    found = re.search(r"^@ side (server|client) (\S+)$", text, re.MULTILINE)
    if found is None:
        return None
    missing = re.search(r"^@ missing (\S+)$", text, re.MULTILINE)
    tests = tuple(
        Test(tool, said, int(rc) if rc else None) for _, tool, said, rc in _TEST.findall(text)
    )
    return Side(found[2], found[1] == "server", missing[1] if missing else "", tests)
