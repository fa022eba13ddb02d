"""`--tags`: refused where no task carries one, since Ansible would then do nothing and say ok."""

import re
import subprocess

from hpcsite.deploy.options import INSTALL_TAG, LAYERS
from hpcsite.errors import CouldNotRunError, UsageError
from hpcsite.paths import content_dir
from hpcsite.site.ansible import ansible_environment
from hpcsite.site.names import nearest

_TASK_TAGS = re.compile(r"^\s*TASK TAGS: \[(?P<tags>.*)\]\s*$", re.MULTILINE)
_TIMEOUT_S = 60


def check_tags(tags: tuple[str, ...]) -> None:
    """Raise `UsageError` for tags that no task has. Asks Ansible only for what is no layer."""
    unsure = [tag for tag in tags if tag not in LAYERS]
    if not unsure:
        return
    known = known_tags() | set(LAYERS)
    unknown = [tag for tag in unsure if tag not in known]
    if unknown:
        near = [match for tag in unknown if (match := nearest(tag, known))]
        meant = f"did you mean {', '.join(dict.fromkeys(near))}? " if near else ""
        raise UsageError(
            f"--tags {','.join(tags)}: no task has the tag {', '.join(unknown)}",
            hint=f"{meant}the layers are {', '.join(LAYERS)}",
        )


def known_tags() -> frozenset[str]:
    """Every tag of the site's playbook, as `ansible-playbook --list-tags` tells them."""
    argv = ["ansible-playbook", "--inventory", "localhost,", "--list-tags"]
    try:
        done = subprocess.run(
            [*argv, str(content_dir() / "playbooks" / "site.yml")],
            env=ansible_environment(),
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CouldNotRunError(f"ansible-playbook --list-tags does not run: {error}") from error
    if done.returncode:
        raise CouldNotRunError(f"ansible-playbook --list-tags: {done.stderr.strip()}")
    return parse_tags(done.stdout) - {INSTALL_TAG}


def parse_tags(output: str) -> frozenset[str]:
    """Tags in the output of `ansible-playbook --list-tags`."""
    lists = (match["tags"].split(",") for match in _TASK_TAGS.finditer(output))
    return frozenset(tag.strip() for tags in lists for tag in tags if tag.strip())
