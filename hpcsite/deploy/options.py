"""What a user may ask of a deploy."""

from dataclasses import dataclass

# In the order in which they run; a play is named "<layer>: <what>" and tagged with its layer.
LAYERS = ("preflight", "base", "software", "scheduler")


@dataclass(frozen=True)
class Options:
    """Options of one deploy. `limit` is a node set as Slurm writes it, group names included."""

    limit: str | None = None
    tags: tuple[str, ...] = ()
    check: bool = False
    diff: bool = False
    verbosity: int = 0
