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
  - One that is there is left alone. If it belongs to somebody else, it is named, since the user
    could not log in and the other one could read on; so is one that cannot be made. The others are
    made all the same, so that one folder does not keep all users from theirs.
options:
  homes:
    description: The folders.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of its user.
        type: str
        required: true
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
      - {name: alice, path: /home/alice, uid: 2001, gid: 2000}
"""

RETURN = """
made:
  description: Folders that were made, or would be in check mode.
  returned: always
  type: list
  elements: str
left_out:
  description: Users who have no home folder of their own now, and why, a sentence each.
  returned: always
  type: list
  elements: str
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


def problem(home: dict[str, Any], skeleton: Path, *, make: bool) -> str:
    """Make a home folder if it is missing; why its user has none of its own, empty if it has."""
    try:
        if make and not os.path.lexists(home["path"]):
            make_home(Path(home["path"]), home["uid"], home["gid"], skeleton)
        owner = os.lstat(home["path"]).st_uid
    except FileNotFoundError as error:
        # A check looks at what is not yet made.
        return f"{error.filename}: {error.strerror}" if make else ""
    except shutil.Error as error:
        return f"{home['path']}: {error}"
    except OSError as error:
        return f"{error.filename or home['path']}: {error.strerror}"
    if owner != home["uid"]:
        return f"{home['path']} belongs to uid {owner}, not {home['uid']}"
    return ""


def main() -> None:
    """Run the module."""
    home = {
        "name": {"type": "str", "required": True},
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
    skeleton, make = Path(module.params["skeleton"]), not module.check_mode
    made, left_out = [], []
    for each in module.params["homes"]:
        missing = not os.path.lexists(each["path"])
        if why := problem(each, skeleton, make=make):
            left_out.append(f"{each['name']}: {why}")
        elif missing:
            made.append(each["path"])
    module.exit_json(changed=bool(made), made=made, left_out=left_out)


if __name__ == "__main__":
    main()
