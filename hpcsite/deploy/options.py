"""What a user may ask of a deploy."""

from dataclasses import dataclass

# In the order in which they run; a play is named "<layer>: <what>" and tagged with its layer.
LAYERS = ("preflight", "base", "fabric", "storage", "software", "scheduler")
# The roles' own installation: skipped, since the role `packages` installs for all roles of a host
# at once. Nine roles that each look for their packages were a third of a deploy without changes.
INSTALL_TAG = "install"


@dataclass(frozen=True)
class Options:
    """Options of one deploy. `limit` is a node set as Slurm writes it, group names included."""

    limit: str | None = None
    tags: tuple[str, ...] = ()
    check: bool = False
    diff: bool = False
    verbosity: int = 0
    rotate_munge_key: bool = False
