#!/usr/bin/python
"""Make home folders that are missing, whole or not at all, and never touch one that is there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: home_folders
short_description: Home folders, made once
description:
  - A folder that is missing is made beside its place with the files of O(skeleton), given to its
    user, and moved into place in one step.
  - One that is there is left alone. If it belongs to somebody else, the module fails, since the
    user could not log in and the other one could read on.
options:
  homes:
    description: The folders.
    type: list
    elements: dict
    required: true
    suboptions:
      path:
        description: The folder; those above it are made for root, mode 0755.
        type: str
        required: true
      uid:
        description: Number of its user.
        type: int
        required: true
      gid:
        description: Number of its group.
        type: int
        required: true
  skeleton:
    description: Folder whose files a new home folder begins with; may be missing.
    type: str
    default: /etc/skel
author: hpcsite
"""

EXAMPLES = """
- name: Make home folders
  home_folders:
    homes:
      - {path: /home/alice, uid: 2001, gid: 2000}
"""

RETURN = """
made:
  description: Folders that were made, or would be in check mode.
  returned: always
  type: list
"""

MODE = 0o700


def make_home(path: Path, uid: int, gid: int, skeleton: Path) -> None:
    """Make a home folder that is missing."""
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    # Left by a run that was killed: nobody has used it.
    draft = path.with_name(f".{path.name}.hpcsite-new")
    if draft.exists():
        shutil.rmtree(draft)
    if skeleton.is_dir():
        shutil.copytree(skeleton, draft, symlinks=True)
    else:
        draft.mkdir()
    draft.chmod(MODE)
    for folder, folders, files in os.walk(draft):
        for name in (*folders, *files):
            os.lchown(os.path.join(folder, name), uid, gid)  # noqa: PTH118 - Path.walk is newer
    os.lchown(draft, uid, gid)
    draft.rename(path)


def foreign(homes: list[dict[str, Any]]) -> list[str]:
    """Describe home folders that are there and are not their users'."""
    wrong = []
    for home in homes:
        try:
            status = os.lstat(home["path"])
        except FileNotFoundError:
            continue
        if status.st_uid != home["uid"]:
            wrong.append(f"{home['path']} belongs to uid {status.st_uid}, not {home['uid']}")
    return wrong


def main() -> None:
    """Run the module."""
    home = {
        "path": {"type": "str", "required": True},
        "uid": {"type": "int", "required": True},
        "gid": {"type": "int", "required": True},
    }
    module = AnsibleModule(
        argument_spec={
            "homes": {"type": "list", "elements": "dict", "required": True, "options": home},
            "skeleton": {"type": "str", "default": "/etc/skel"},
        },
        supports_check_mode=True,
    )
    homes = module.params["homes"]
    missing = [each for each in homes if not os.path.lexists(each["path"])]
    if not module.check_mode:
        for each in missing:
            skeleton = Path(module.params["skeleton"])
            make_home(Path(each["path"]), each["uid"], each["gid"], skeleton)
    if wrong := foreign(homes):
        module.fail_json(
            msg=f"{'; '.join(wrong)}. Give each folder to its user with `chown --recursive "
            "--from=OLD NEW FOLDER`, or move it away and deploy again",
            made=[each["path"] for each in missing],
        )
    module.exit_json(changed=bool(missing), made=[each["path"] for each in missing])


if __name__ == "__main__":
    main()
