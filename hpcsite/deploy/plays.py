"""Which play comes last. Ansible does not say whether a run went through all of its plays."""

from pathlib import Path
from typing import Any

import yaml

from hpcsite.deploy.events import PlayStarted, play_of

_IMPORT = "ansible.builtin.import_playbook"


def last_play(playbook: Path) -> PlayStarted:
    """Find the play that a run begins last when no play before it ends the run."""
    entries: list[dict[str, Any]] = yaml.safe_load(playbook.read_text(encoding="utf-8"))
    last = entries[-1]
    if _IMPORT in last:
        return last_play(playbook.parent / last[_IMPORT])
    return play_of(str(last["name"]))
