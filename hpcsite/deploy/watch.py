"""What a plan needs of a run, which a deploy does not."""

from pathlib import Path
from typing import Any, Protocol


class Watch(Protocol):
    """Sees everything that Ansible reports, before it is read, shown or logged."""

    def learn_secrets(self, folder: Path) -> None:
        """Be told where secrets are that the run uses; the folder may be missing."""

    def raw(self, event: dict[str, Any]) -> None:
        """See one event of ansible-runner, and take out of it what must not be seen further on."""
